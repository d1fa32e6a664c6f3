"""Edit and republish: one failed execution with other parameters, checked against its code before it is sent."""

from __future__ import annotations

import json
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.contrib.admin.utils import unquote
from django.core.exceptions import PermissionDenied, ValidationError
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html
from django.utils.translation import gettext as _

from scheduling import failed
from scheduling.admin import params_diff
from scheduling.admin.confirm import Confirmation, page
from scheduling.admin.params_form import MEDIA as PARAMS_MEDIA
from scheduling.admin.params_form import ParamsForm
from scheduling.admin.params_model import masked, params_table
from scheduling.admin.parts import EMPTY, MEDIA, first_line, json_block, shown
from scheduling.admin.scheduler_panels import handler_of_execution
from scheduling.admin.trail import record
from scheduling.admin.transport import transport
from scheduling.broker import BrokerError
from scheduling.contract import problem_of
from scheduling.models import FailedExecution, SchedulerExecution
from scheduling.registry import Handler
from scheduling.targets import find_target

TEMPLATE = "admin/scheduling/failedexecution/edit.html"


class EditForm(forms.Form):
    """The parameters for one execution; `attempt` is the one whose failure the operator looked at."""

    attempt = forms.IntegerField(widget=forms.HiddenInput)

    def __init__(self, row: FailedExecution, data: Any = None) -> None:
        self.row, self.handler, self.old = row, handler_of_execution(row), _stored(row)
        self.target = find_target(row.type, row.target_id)
        inherited = getattr(self.target, "params", None)
        self.params = ParamsForm(self.handler, self.old, inherited=inherited, data=data)
        super().__init__(data, initial={"attempt": row.attempt})

    def clean(self) -> dict[str, Any]:
        """With the secrets that were left alone, and fit for the code."""
        data = super().clean() or self.cleaned_data
        if not self.params.is_valid():
            raise ValidationError(_("Please correct the error below."), code="params")
        # Beyond what the form asks: the target's own may be spoilt.
        if found := problem_of(self.row.type, self.target, self.params.params):
            # Names of unknown parameters are quoted in it.
            raise ValidationError(shown(found, 1_000), code="params")
        return {**data, "params": self.params.params}

    def clean_attempt(self) -> int:
        """Refused, when it ran and failed again meanwhile."""
        attempt: int = self.cleaned_data["attempt"]
        if attempt != self.row.attempt:
            raise ValidationError(_("It ran and failed again meanwhile: look at it anew."), code="attempt")
        return attempt


class EditRepublish(admin.ModelAdmin):
    """Gives the inbox the page."""

    def get_urls(self) -> list[URLPattern]:
        """Its address stands before the catch-all of the change page."""
        view = self.admin_site.admin_view(self.edit_view)
        return [path("<path:object_id>/edit/", view, name="scheduling_failedexecution_edit"), *super().get_urls()]

    def edit_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """GET shows the form; POST asks, with what changes; POST of that page sends it."""
        if not request.user.has_perm("scheduling.republish_failedexecution") or not self.has_view_permission(request):
            raise PermissionDenied
        row: FailedExecution | None = self.get_object(request, unquote(object_id))
        back = reverse("admin:scheduling_schedulerexecution_change", args=[unquote(object_id)])
        if row is None:
            self.message_user(request, _("It is not in the inbox: somebody was faster."), messages.WARNING)
            return HttpResponseRedirect(back)
        if not row.type:
            self.message_user(request, _("Its message cannot be read, so it has no parameters."), messages.ERROR)
            return HttpResponseRedirect(back)
        form = EditForm(row, request.POST if request.method == "POST" else None)
        if request.method == "POST" and (wanted := ParamsForm.wanted(request.POST)) is not None:
            return form.params.fragment(wanted)
        if not form.is_valid():
            return self._edit_form(request, row, form, back)
        if request.POST.get("post") != "yes":
            return self._ask_edit(request, row, form, back)
        self._send_edited(request, row, form)
        return HttpResponseRedirect(back)

    def _edit_form(self, request: HttpRequest, row: FailedExecution, form: EditForm, back: str) -> TemplateResponse:
        target = find_target(row.type, row.target_id)
        defaults = getattr(target, "params", None)
        context = {
            **self.admin_site.each_context(request),
            "opts": self.opts,
            "media": MEDIA + PARAMS_MEDIA,
            "title": _("Edit and republish"),
            "subtitle": None,
            "c": {"crumbs": _crumbs(row, back)},
            "has_view_permission": True,
            "form": form,
            "back": back,
            "facts": _facts(row, request),
            "warnings": _warnings(target, form.handler),
            "table": params_table(form.handler.params) if form.handler is not None and not form.params.inputs else "",
            "defaults": json_block(masked(form.handler, defaults)) if defaults else "",
        }
        return TemplateResponse(request, TEMPLATE, context)

    def _ask_edit(self, request: HttpRequest, row: FailedExecution, form: EditForm, back: str) -> TemplateResponse:
        found = params_diff.changes(form.handler, form.old, form.cleaned_data["params"])
        warnings = _warnings(find_target(row.type, row.target_id), form.handler)
        if not found:
            warnings.append(_("Nothing is changed: it will run with the parameters that it had."))
        return page(
            request,
            self,
            Confirmation(
                title=_("Edit and republish"),
                lead=_("The execution will run again with these parameters, with its retries at zero."),
                submit=_("Republish"),
                back=request.path,
                facts=_facts(row, request),
                changes=found,
                warnings=warnings,
                hidden=[("post", "yes"), ("attempt", row.attempt), ("params", json.dumps(form.params.written))],
                crumbs=_crumbs(row, back),
            ),
        )

    def _send_edited(self, request: HttpRequest, row: FailedExecution, form: EditForm) -> None:
        params, by = form.cleaned_data["params"], request.user.get_username()
        try:
            with transport() as broker:
                done = failed.republish([row.pk], broker, by, params=params, attempt=form.cleaned_data["attempt"])
        except BrokerError as error:
            self.message_user(request, _("The broker cannot be used: %s") % error, messages.ERROR)
            return
        if not done:
            self.message_user(request, _("It is not in the inbox: somebody was faster."), messages.WARNING)
            return
        found = params_diff.changes(form.handler, form.old, params, params_diff.TRAIL_LIMIT)
        said = f"republish: {params_diff.trail(found)}" if found else "republish"
        record(request, SchedulerExecution.objects.filter(pk=row.pk), said)
        self.message_user(request, _("It was republished with the parameters that are shown here."), messages.SUCCESS)
        # Plain SQL may have written any JSON.
        kept = getattr(row.scheduler, "params", None)
        if found and isinstance(kept, dict) and params_diff.changes(form.handler, params, kept):
            said = _("Its schedule keeps its own parameters, and runs with those next time: {}")
            self.message_user(request, format_html(said, _schedule(row, request)), messages.WARNING)


def _stored(row: FailedExecution) -> dict[str, Any]:
    # Plain SQL may have written any JSON.
    return row.params if isinstance(row.params, dict) else {}


def _warnings(target: Any, handler: Handler | None) -> list[str]:
    if target is None:
        return [_("Its target is deleted: it will fail again.")]
    if handler is None:
        return [_("Its code is not registered here, so the parameters cannot be checked.")]
    return []


def _crumbs(row: FailedExecution, back: str) -> list[tuple[str, Any]]:
    return [(back, _("Execution %(id)s") % {"id": row.pk})]


def _schedule(row: FailedExecution, request: HttpRequest) -> str:
    """Its name, leading to where its own parameters are changed."""
    if row.scheduler is None:
        return EMPTY
    name = shown(row.scheduler, 120)
    if not request.user.has_perm("scheduling.view_scheduler"):
        return name
    address = reverse("admin:scheduling_scheduler_change", args=[row.scheduler_id])
    return format_html('<a href="{}">{}</a>', address, name)


def _facts(row: FailedExecution, request: HttpRequest) -> list[tuple[Any, Any]]:
    return [
        (_("Execution"), row.pk),
        (_("Target"), shown(row.target_name or row.type)),
        (_("Schedule"), _schedule(row, request)),
        (_("Error"), first_line(f"{row.error_class}: {row.error_message}", 200)),
    ]
