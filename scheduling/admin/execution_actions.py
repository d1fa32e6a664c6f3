"""Buttons of an execution's page, each with a page in between: cancel, run again, edit and run again."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import URLPattern, path
from django.utils.translation import gettext as _

from scheduling.admin.confirm import Confirmation, page
from scheduling.admin.edit_rerun import EditRerun
from scheduling.admin.one_execution import address_of, crumbs_of, facts_of, seen
from scheduling.admin.rerun import Rerun
from scheduling.admin.trail import record
from scheduling.cancel import cancel
from scheduling.core.lifecycle import CANCELLABLE, State


class ExecutionActions(EditRerun, Rerun):
    """Gives the executions' admin the views."""

    def get_urls(self) -> list[URLPattern]:
        """Their addresses stand before the catch-all of the page itself."""
        view = self.admin_site.admin_view(self.cancel_view)
        own = path("<path:object_id>/cancel/", view, name="scheduling_schedulerexecution_cancel")
        return [own, *super().get_urls()]

    def cancel_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """GET asks, POST cancels: what waits at once, what runs by asking its consumer to end it."""
        row = seen(self, request, object_id, "scheduling.cancel_execution")
        if row is None:
            return self._get_obj_does_not_exist_redirect(request, self.opts, object_id)  # type: ignore[attr-defined,no-any-return]
        if request.method == "POST":
            said = cancel(row.pk, request.user.get_username())
            text, level = {
                "cancelled": (_("It is cancelled, and does not run."), messages.SUCCESS),
                "asked": (_("Its consumer was asked to end it: a few seconds, then it is killed."), messages.SUCCESS),
            }.get(said, (_("It was over already; nothing was cancelled."), messages.WARNING))
            if said in {"cancelled", "asked"}:
                record(request, [row], f"cancel: {said}")
            self.message_user(request, text, level)
            return HttpResponseRedirect(address_of(row))
        over = row.state not in CANCELLABLE
        warnings = []
        if over:
            warnings.append(_("It is over already: there is nothing to cancel."))
        elif row.state == State.RUNNING.value:
            warnings.append(
                _("It runs: its process is asked to end (TERM), and killed with all that it started 5 s later.")
            )
        return page(
            request,
            self,
            Confirmation(
                title=_("Cancel"),
                lead=_("The execution will not go on, and no retry follows. What it has done so far stays done."),
                submit=_("Cancel the execution"),
                back=address_of(row),
                facts=facts_of(row),
                warnings=warnings,
                danger=True,
                blocked=over,
                crumbs=crumbs_of(row),
            ),
        )
