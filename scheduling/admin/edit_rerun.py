"""Edit and run again: the schedule once more, with the parameters of one execution, changed."""

from __future__ import annotations

import json
from typing import Any

from django import forms
from django.contrib import admin
from django.core.exceptions import ValidationError
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.translation import gettext as _

from scheduling.admin import params_diff
from scheduling.admin.confirm import Confirmation, new_key, page
from scheduling.admin.one_execution import address_of, crumbs_of, facts_of, seen
from scheduling.admin.params_form import MEDIA as PARAMS_MEDIA
from scheduling.admin.params_form import ParamsForm
from scheduling.admin.params_model import masked, params_table
from scheduling.admin.parts import MEDIA, json_block, shown
from scheduling.admin.rerun import rerun_warnings, run_again
from scheduling.admin.scheduler_panels import handler_of, handler_of_execution
from scheduling.contract import problem_of
from scheduling.models import Scheduler, SchedulerExecution

TEMPLATE = "admin/scheduling/failedexecution/edit.html"


class RerunForm(forms.Form):
    """The parameters of the run to come, held against what the schedule runs now."""

    def __init__(self, row: SchedulerExecution, scheduler: Scheduler, data: Any = None) -> None:
        self.scheduler, self.handler = scheduler, handler_of(scheduler)
        self.old = row.params if isinstance(row.params, dict) else {}
        inherited = getattr(scheduler.target, "params", None)
        self.former = handler_of_execution(row)
        self.params = ParamsForm(self.handler, self.old, inherited=inherited, stored_for=self.former, data=data)
        super().__init__(data)

    def clean(self) -> dict[str, Any]:
        """With the secrets that were left alone, and fit for the code."""
        if not self.params.is_valid():
            raise ValidationError(_("Please correct the error below."), code="params")
        # Beyond what the form asks: the target's own may be spoilt.
        if found := problem_of(self.scheduler.target_type, self.scheduler.target, self.params.params):
            # Names of unknown parameters are quoted in it.
            raise ValidationError(shown(found, 1_000), code="params")
        return {"params": self.params.params}


class EditRerun(admin.ModelAdmin):
    """Gives the executions' admin the page."""

    def get_urls(self) -> list[URLPattern]:
        """Its address stands before the catch-all of the change page."""
        view = self.admin_site.admin_view(self.edit_rerun_view)
        own = path("<path:object_id>/rerun/edit/", view, name="scheduling_schedulerexecution_edit_rerun")
        return [own, *super().get_urls()]

    def edit_rerun_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """GET shows the form; POST asks, with what changes; POST of that page runs it."""
        row = seen(self, request, object_id, "scheduling.rerun_execution")
        if row is None:
            return self._get_obj_does_not_exist_redirect(request, self.opts, object_id)  # type: ignore[attr-defined,no-any-return]
        if row.scheduler is None:
            # That page says why it cannot be.
            return HttpResponseRedirect(reverse("admin:scheduling_schedulerexecution_rerun", args=[row.pk]))
        form = RerunForm(row, row.scheduler, request.POST if request.method == "POST" else None)
        if request.method == "POST" and (wanted := ParamsForm.wanted(request.POST)) is not None:
            return form.params.fragment(wanted)
        if not form.is_valid():
            return self._rerun_form(request, row, form)
        if request.POST.get("post") != "yes":
            return self._ask_rerun(request, row, form)
        return HttpResponseRedirect(run_again(self, request, row, form.cleaned_data["params"]))

    def _rerun_form(self, request: HttpRequest, row: SchedulerExecution, form: RerunForm) -> TemplateResponse:
        request.current_app = self.admin_site.name
        defaults = getattr(form.scheduler.target, "params", None)
        context = {
            **self.admin_site.each_context(request),
            "opts": self.opts,
            "media": MEDIA + PARAMS_MEDIA,
            "title": _("Edit and run again"),
            "subtitle": None,
            "c": {"crumbs": crumbs_of(row)},
            "has_view_permission": True,
            "form": form,
            "back": address_of(row),
            "facts": facts_of(row),
            "warnings": rerun_warnings(row),
            "table": params_table(form.handler.params) if form.handler is not None and not form.params.inputs else "",
            "defaults": json_block(masked(form.handler, defaults)) if defaults else "",
        }
        return TemplateResponse(request, TEMPLATE, context)

    def _ask_rerun(self, request: HttpRequest, row: SchedulerExecution, form: RerunForm) -> TemplateResponse:
        found = params_diff.changes(form.handler, form.old, form.cleaned_data["params"], other=form.former)
        warnings = rerun_warnings(row)
        if not found:
            warnings.append(_("Nothing is changed: it will run with the parameters of this execution."))
        return page(
            request,
            self,
            Confirmation(
                title=_("Edit and run again"),
                lead=_("Its schedule will run once more, now, with these parameters."),
                submit=_("Run again"),
                back=request.path,
                facts=facts_of(row),
                changes=found,
                warnings=warnings,
                hidden=[("post", "yes"), ("key", new_key()), ("params", json.dumps(form.params.written))],
                crumbs=crumbs_of(row),
            ),
        )
