"""Edit and republish: run one failed execution again with other parameters.

The parameters are checked against the handler's params model before the execution is published.
"""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import messages
from django.contrib.admin.utils import unquote
from django.core.exceptions import ValidationError
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils.html import format_html
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from scheduling.admin.common.broker import open_broker
from scheduling.admin.common.confirm import Confirmation
from scheduling.admin.common.next_page import next_page
from scheduling.admin.common.pages import Page
from scheduling.admin.executions.edit_page import EditPage, RunParamsForm
from scheduling.admin.executions.lookup import way_back
from scheduling.admin.inbox.facts import failure_facts, schedule_of
from scheduling.admin.inbox.not_moved import not_moved
from scheduling.admin.ui.links import execution_url
from scheduling.admin.ui.targets import unknown_code
from scheduling.broker import BrokerError
from scheduling.handlers.targets import find_target, handler_of_execution
from scheduling.inbox import actions as inbox_actions
from scheduling.models import FailedExecution, SchedulerExecution
from scheduling.operations import params_diff
from scheduling.operations.audit import params_edits, record


class EditForm(RunParamsForm):
    """The form for one execution's parameters. `attempt` is the number of the attempt whose failure the page showed."""

    attempt = forms.IntegerField(widget=forms.HiddenInput)

    def __init__(self, row: FailedExecution, data: Any = None) -> None:
        target = find_target(row.type, row.target_id)
        super().__init__(row, handler_of_execution(row), row.type, target, data, initial={"attempt": row.attempt})

    def clean_attempt(self) -> int:
        """Refuses the edit if the execution has run and failed again since the page was opened."""
        attempt: int = self.cleaned_data["attempt"]
        if attempt != self.row.attempt:
            raise ValidationError(_("It ran and failed again meanwhile. Look at the new failure."), code="attempt")
        return attempt


class EditRepublish(EditPage):
    """Adds the page "Edit and republish" to the inbox."""

    pages: tuple[Page, ...] = (Page("edit", "republish"),)
    unchanged = gettext_lazy("Nothing is changed: it will run with the parameters that it had.")

    def not_found(self, request: HttpRequest, object_id: str) -> HttpResponseRedirect:
        self.message_user(request, _("Already handled by someone else."), messages.WARNING)
        return HttpResponseRedirect(next_page(request, execution_url(unquote(object_id))))

    def edit_view(self, request: HttpRequest, row: FailedExecution) -> HttpResponse:
        """GET shows the form. The form's POST shows the confirmation page. The confirmation's POST republishes."""
        back = execution_url(row.pk)
        if not row.type:
            self.message_user(request, _("Its message cannot be read, so it has no parameters."), messages.ERROR)
            return HttpResponseRedirect(back)
        return self.edit_response(request, EditForm(row, request.POST if request.method == "POST" else None))

    def edit_question(self, request: HttpRequest, form: EditForm) -> Confirmation:
        row = form.row
        return Confirmation(
            title=_("Edit and republish"),
            lead=_("This run will be queued again with these parameters; the retry count starts over."),
            submit=_("Republish"),
            facts=failure_facts(row, request),
            warnings=_warnings(form),
            hidden=[("attempt", row.attempt)],
            **way_back(row),
        )

    def apply_edit(self, request: HttpRequest, form: EditForm) -> str:
        row, params, attempt = form.row, form.cleaned_data["params"], form.cleaned_data["attempt"]
        by, back = request.user.get_username(), execution_url(row.pk)
        try:
            with open_broker() as broker:
                done = inbox_actions.republish([row.pk], broker, by, params=params, attempt=attempt)
        except BrokerError as error:
            self.message_user(request, _("The broker cannot be used: %s") % error, messages.ERROR)
            return back
        if not done:
            self.message_user(request, not_moved(row), messages.WARNING)
            return back
        edits = params_edits(form.handler, form.old, params)
        record(request, SchedulerExecution.objects.filter(pk=row.pk), "republish", edits)
        self.message_user(request, _("It was republished with the parameters that are shown here."), messages.SUCCESS)
        # Plain SQL may have written params that are not a JSON object.
        kept = getattr(row.scheduler, "params", None)
        if edits and isinstance(kept, dict) and params_diff.changes(form.handler, params, kept):
            said = _("Its schedule keeps its own parameters, and runs with those next time: {}")
            self.message_user(request, format_html(said, schedule_of(row, request)), messages.WARNING)
        return back


def _warnings(form: EditForm) -> list[str]:
    if form.target is None:
        return [_("Its target is deleted: it will fail again.")]
    if form.handler is None:
        return [unknown_code(form.type)]
    return []
