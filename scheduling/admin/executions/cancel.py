"""The page "Cancel" of an execution. It asks for confirmation, and then cancels the execution."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils.translation import gettext as _

from scheduling.admin.common.confirm import Confirmation
from scheduling.admin.common.pages import Page
from scheduling.admin.executions.lookup import facts_of, way_back
from scheduling.admin.executions.rerun import Rerun
from scheduling.admin.ui.links import execution_url
from scheduling.core.lifecycle import OPEN_STATES, State
from scheduling.execution.cancel import cancel
from scheduling.models import SchedulerExecution
from scheduling.operations.audit import record


class ExecutionActions(Rerun):
    """Adds the pages "Cancel", "Run again" and "Edit and run again" to the executions' admin."""

    pages: tuple[Page, ...] = (Page("cancel", "cancel"),)

    def has_cancel_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("scheduling.cancel_execution")

    def cancel_view(self, request: HttpRequest, row: SchedulerExecution) -> HttpResponse:
        """GET shows the confirmation page; POST cancels.

        A waiting execution is cancelled at once. If the execution is running, its consumer is asked to end the attempt.
        """
        if request.method == "POST":
            said = cancel(row.pk, request.user.get_username())
            text, level = {
                "cancelled": (_("Cancelled. It will not run."), messages.SUCCESS),
                "asked": (_("Cancelling. It is killed if it does not stop in 5 s."), messages.SUCCESS),
            }.get(said, (_("It had already ended. Nothing was cancelled."), messages.WARNING))
            if said in {"cancelled", "asked"}:
                record(request, [row], f"cancel: {said}")
            self.message_user(request, text, level)
            return HttpResponseRedirect(execution_url(row.pk))
        over, warnings = row.state not in OPEN_STATES, []
        if row.state == State.RUNNING.value:
            warnings = [_("It is running: its process is asked to stop (TERM), and killed after 5 s.")]
        return Confirmation(
            title=_("Cancel"),
            lead=_("The run has already ended. There is nothing to cancel.")
            if over
            else _("The run ends, and no retry follows. What it has done so far is not undone."),
            submit=_("Cancel the run"),
            keep=_("Keep running"),
            facts=facts_of(row),
            warnings=warnings,
            danger=True,
            blocked=over,
            **way_back(row),
        ).response(request, self)
