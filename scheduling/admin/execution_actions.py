"""Cancel and run again: buttons of an execution's page, each with a page in between."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.contrib import admin, messages
from django.contrib.admin.utils import unquote
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import URLPattern, path, reverse
from django.utils.translation import gettext as _

from scheduling.admin.confirm import Confirmation, key_of, new_key, page
from scheduling.admin.params_model import masked
from scheduling.admin.parts import EMPTY, json_block, shown, state_chip
from scheduling.admin.run_now import execution_link
from scheduling.admin.scheduler_panels import handler_of_execution, params_problem
from scheduling.admin.trail import record
from scheduling.admin.transport import transport
from scheduling.broker import BrokerError
from scheduling.cancel import cancel
from scheduling.core.lifecycle import CANCELLABLE
from scheduling.core.occurrences import manual_key
from scheduling.dispatch import run_now
from scheduling.models import SchedulerExecution


class ExecutionActions(admin.ModelAdmin):
    """Gives the executions' admin the two views."""

    def get_urls(self) -> list[URLPattern]:
        """Their addresses stand before the catch-all of the page itself."""
        views: list[tuple[str, Callable[..., Any]]] = [("cancel", self.cancel_view), ("rerun", self.rerun_view)]
        own = [
            path(
                f"<path:object_id>/{name}/",
                self.admin_site.admin_view(view),
                name=f"scheduling_schedulerexecution_{name}",
            )
            for name, view in views
        ]
        return [*own, *super().get_urls()]

    def _seen(self, request: HttpRequest, object_id: str, permission: str) -> SchedulerExecution | None:
        if not request.user.has_perm(permission):
            raise PermissionDenied
        row: SchedulerExecution | None = self.get_object(request, unquote(object_id))
        if not self.has_view_permission(request, row):
            raise PermissionDenied
        return row

    def cancel_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """GET asks, POST cancels: what waits at once, what runs by asking its consumer to end it."""
        row = self._seen(request, object_id, "scheduling.cancel_execution")
        if row is None:
            return self._get_obj_does_not_exist_redirect(request, self.opts, object_id)  # type: ignore[attr-defined,no-any-return]
        back = reverse("admin:scheduling_schedulerexecution_change", args=[row.pk])
        if request.method == "POST":
            said = cancel(row.pk, request.user.get_username())
            text, level = {
                "cancelled": (_("It is cancelled, and does not run."), messages.SUCCESS),
                "asked": (_("Its consumer was asked to end it: a few seconds, then it is killed."), messages.SUCCESS),
            }.get(said, (_("It was over already; nothing was cancelled."), messages.WARNING))
            if said in {"cancelled", "asked"}:
                record(request, [row], f"cancel: {said}")
            self.message_user(request, text, level)
            return HttpResponseRedirect(back)
        over = row.state not in CANCELLABLE
        return page(
            request,
            self,
            Confirmation(
                title=_("Cancel"),
                lead=_("The execution will not go on, and no retry follows. What it has done so far stays done."),
                submit=_("Cancel the execution"),
                back=back,
                facts=_facts(row),
                warnings=[_("It is over already: there is nothing to cancel.")] if over else [],
                danger=True,
                blocked=over,
                crumbs=[(back, _("Execution %(id)s") % {"id": row.pk})],
            ),
        )

    def rerun_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """GET asks, POST runs the schedule once more with this execution's parameters."""
        row = self._seen(request, object_id, "scheduling.rerun_execution")
        if row is None:
            return self._get_obj_does_not_exist_redirect(request, self.opts, object_id)  # type: ignore[attr-defined,no-any-return]
        back = reverse("admin:scheduling_schedulerexecution_change", args=[row.pk])
        problem = self._rerun_problem(row)
        if request.method == "POST" and not problem:
            return HttpResponseRedirect(self._rerun(request, row) or back)
        warnings = [problem] if problem else []
        scheduler = row.scheduler
        if scheduler is not None and (scheduler.target_type, scheduler.target_id) != (row.type, row.target_id):
            warnings.append(
                _("Its schedule has another target by now: %(target)s is what will run.") % {"target": scheduler.target}
            )
        return page(
            request,
            self,
            Confirmation(
                title=_("Run again"),
                lead=_("Its schedule will run once more, now, with the parameters of this execution."),
                submit=_("Run again"),
                back=back,
                facts=[*_facts(row), (_("Parameters"), json_block(masked(handler_of_execution(row), row.params)))],
                warnings=warnings,
                hidden=[("key", new_key())],
                blocked=bool(problem),
                crumbs=[(back, _("Execution %(id)s") % {"id": row.pk})],
            ),
        )

    @staticmethod
    def _rerun_problem(row: SchedulerExecution) -> str:
        if row.scheduler is None:
            return _("Its schedule is deleted: there is nothing to run again.")
        if not isinstance(row.params, dict):
            return _("Its parameters are not a JSON object.")
        stored = row.scheduler.params
        if isinstance(stored, dict):
            row.scheduler.params = {**stored, **row.params}
        found = params_problem(row.scheduler)
        row.scheduler.params = stored
        return _("Its parameters do not fit its code any more: %s") % found if found else ""

    def _rerun(self, request: HttpRequest, row: SchedulerExecution) -> str | None:
        assert row.scheduler is not None  # noqa: S101 - `_rerun_problem` has seen to it
        key = key_of(request)
        again = SchedulerExecution.objects.filter(scheduler=row.scheduler, execution_key=manual_key(key)).exists()
        try:
            with transport() as broker:
                made = run_now(row.scheduler, broker, request.user.get_username(), params=row.params, key=key)
        except BrokerError as error:
            self.message_user(request, _("The broker cannot be reached: %s") % error, messages.ERROR)
            return None
        if not again:
            record(request, [row], f"run again: execution {made.pk}")
            record(request, [row.scheduler], f"run now: execution {made.pk}, again as {row.pk}")
        self.message_user(request, _("It runs again, as the execution that is shown here."), messages.SUCCESS)
        return reverse("admin:scheduling_schedulerexecution_change", args=[made.pk])


def _facts(row: SchedulerExecution) -> list[tuple[str, Any]]:
    return [
        (_("Execution"), execution_link(row, str(row.pk))),
        (_("State"), state_chip(row.state)),
        (_("Target"), shown(row.target_name or row.type)),
        (_("Schedule"), shown(row.scheduler, 120) if row.scheduler is not None else EMPTY),
    ]
