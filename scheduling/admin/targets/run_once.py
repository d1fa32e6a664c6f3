"""The page "Run once" of a worker, report or reminder. It runs the target now, without a schedule."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.db import models
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils.translation import gettext as _

from scheduling.admin.common.audited import Audited
from scheduling.admin.common.broker import open_broker
from scheduling.admin.common.confirm import Confirmation, key_of, new_key
from scheduling.admin.common.pages import Page
from scheduling.admin.params.form import ParamsForm
from scheduling.admin.params.inputs import NAME
from scheduling.admin.ui.links import admin_url, execution_url
from scheduling.admin.ui.targets import unknown_code
from scheduling.broker import BrokerError
from scheduling.core.text import visible_text
from scheduling.execution.run_once import run_once
from scheduling.handlers.permission import lacked
from scheduling.handlers.validation import run_params_error
from scheduling.models import SchedulerExecution
from scheduling.operations.audit import params_edits, record


class RunOnce(Audited):
    """Adds the page, for users who may run schedules."""

    pages: tuple[Page, ...] = (Page("run", "run"),)

    def has_run_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("scheduling.run_scheduler")

    def render_change_form(self, request: HttpRequest, context: Any, *args: Any, **kwargs: Any) -> HttpResponse:
        """Adds the address of the button."""
        row = context.get("original")
        if row is not None and self.has_run_permission(request) and lacked(request.user, row) is None:
            context["run_once"] = admin_url(f"{self.opts.app_label}_{self.opts.model_name}_run", row.pk)
        return super().render_change_form(request, context, *args, **kwargs)

    def run_view(self, request: HttpRequest, row: models.Model) -> HttpResponse:
        """GET asks for confirmation, and for parameters of this run. POST runs the target."""
        defaults, data = getattr(row, "params", {}), request.POST if NAME in request.POST else None
        form = ParamsForm(self.code_of(row), {}, inherited=defaults, data=data)
        blocked = not isinstance(defaults, dict)
        problem = visible_text(run_params_error(self._type, row, {}), 1_000) if blocked or not form.bound else ""
        if request.method == "POST" and not blocked and (form.is_valid() if form.bound else not problem):
            made = self._run(request, row, form.params if form.bound else {})
            if made is not None and request.user.has_perm("scheduling.view_schedulerexecution"):
                return HttpResponseRedirect(execution_url(made.pk))
            return HttpResponseRedirect(self._address(row))
        return Confirmation(
            title=_("Run once"),
            lead=_("“%(name)s” will run once, now, without a schedule.") % {"name": visible_text(row, 120)},
            submit=_("Run once"),
            back=self._address(row),
            error=_("Please correct the error below.") if form.errors else "",
            warnings=self._warnings(row, problem),
            hidden=[("key", key_of(request) if form.bound else new_key())],
            params=form,
            blocked=blocked,
            crumbs=[(self._address(row), visible_text(row, 120))],
        ).response(request, self)

    @property
    def _type(self) -> str:
        return str(self.opts.model_name)

    def _address(self, row: models.Model) -> str:
        return admin_url(f"{self.opts.app_label}_{self.opts.model_name}_change", row.pk)

    def _warnings(self, row: models.Model, problem: str) -> list[str]:
        if self.code_of(row) is None:
            return [unknown_code(self._type)]
        return [_("Its own parameters do not fit the code. %s") % problem] if problem else []

    def _run(self, request: HttpRequest, row: models.Model, params: dict[str, Any]) -> SchedulerExecution | None:
        try:
            with open_broker() as broker:
                made, is_new = run_once(row, broker, request.user.get_username(), params, key_of(request))
        except BrokerError as error:
            self.message_user(request, _("The broker cannot be reached: %s") % error, messages.ERROR)
            return None
        if is_new:
            record(request, [row], f"run once: execution {made.pk}", params_edits(self.code_of(row), {}, params))
        self.message_user(request, _("Started."), messages.SUCCESS)
        return made
