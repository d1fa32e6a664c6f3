"""Republish and discard of one failed execution: a button, a short confirmation, and back to the page before."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils.html import format_html
from django.utils.translation import gettext as _

from scheduling.admin.common.broker import open_broker
from scheduling.admin.common.confirm import Confirmation
from scheduling.admin.common.next_page import NEXT, next_page
from scheduling.admin.common.pages import Page, Pages
from scheduling.admin.common.viewer import Viewer
from scheduling.admin.executions.live_chip import live_chip
from scheduling.admin.executions.lookup import way_back
from scheduling.admin.inbox.answer import OneReasonForm
from scheduling.admin.inbox.facts import failure_facts
from scheduling.admin.inbox.not_moved import not_moved
from scheduling.admin.ui.links import execution_link, execution_url
from scheduling.broker import Broker, BrokerError
from scheduling.core.text import visible_text
from scheduling.inbox import actions as inbox_actions
from scheduling.models import FailedExecution, SchedulerExecution
from scheduling.operations.audit import record


class SingleFailure(Pages):
    """Adds the pages "Republish" and "Discard" of one execution to the inbox."""

    pages: tuple[Page, ...] = (Page("republish", "republish"), Page("discard", "discard"))

    def republish_view(self, request: HttpRequest, row: FailedExecution) -> HttpResponse:
        """GET asks for confirmation. The POST republishes the execution."""
        if not row.type:
            self.message_user(request, _("Its message cannot be read. Discard it."), messages.ERROR)
            return HttpResponseRedirect(next_page(request, execution_url(row.pk)))
        question = _question(
            request, row,
            title=_("Republish"),
            lead=_("This run will be queued again; the retry count starts over."),
            submit=_("Republish"),
        )  # fmt: skip
        if not _is_confirmed(request, row, question):
            return question.response(request, self)
        by = request.user.get_username()

        def republish(broker: Broker) -> list[int]:
            return inbox_actions.republish([row.pk], broker, by, attempt=row.attempt)

        return self._act_on_one(request, row, republish, "republish", _("Queued again: {}."), follow=True)

    def discard_view(self, request: HttpRequest, row: FailedExecution) -> HttpResponse:
        """GET asks for a reason. The POST takes the execution out of the inbox."""
        form = OneReasonForm(request.POST if request.method == "POST" else None)
        question = _question(
            request, row,
            title=_("Discard"),
            lead=_("This run will leave the inbox and will not run again."),
            submit=_("Discard"),
            form=form,
            danger=True,
        )  # fmt: skip
        if not _is_confirmed(request, row, question) or not form.is_valid():
            return question.response(request, self)
        reason, by = visible_text(form.cleaned_data["reason"], 1_500), request.user.get_username()

        def discard(broker: Broker) -> list[int]:
            return inbox_actions.discard([row.pk], by, reason, broker=broker)

        return self._act_on_one(request, row, discard, f"discard: {reason}", _("Discarded: {}."))

    def _act_on_one(
        self,
        request: HttpRequest,
        row: FailedExecution,
        act: Callable[[Broker], list[int]],
        entry: str,
        said: Any,
        follow: bool = False,
    ) -> HttpResponse:
        """Act on the row, write the audit entry, tell the operator, and go back to the page before.

        Args:
            act: returns the ids of the executions that left the inbox.
            follow: whether the message shows the execution's state until the execution has ended.
        """
        own = execution_url(row.pk)
        back = next_page(request, own)
        try:
            with open_broker() as broker:
                moved = act(broker)
        except BrokerError as error:
            self.message_user(request, _("The broker cannot be used: %s") % error, messages.ERROR)
        else:
            if moved:
                record(request, SchedulerExecution.objects.filter(pk=row.pk), entry)
                message = format_html(said, execution_link(row.pk))
                # The execution's own page shows the state without the message.
                if follow and back != own and Viewer.of(request).sees("schedulerexecution"):
                    message += live_chip(row.pk)
                self.message_user(request, message, messages.SUCCESS)
            else:
                self.message_user(request, not_moved(row), messages.WARNING)
        return HttpResponseRedirect(back)


def _question(request: HttpRequest, row: FailedExecution, **texts: Any) -> Confirmation:
    back = next_page(request, execution_url(row.pk))
    return Confirmation(
        facts=failure_facts(row, request),
        hidden=[(NEXT, back), ("attempt", row.attempt)],
        **{**way_back(row), "back": back},
        **texts,
    )


def _is_confirmed(request: HttpRequest, row: FailedExecution, question: Confirmation) -> bool:
    """Whether the POST confirms the failure of the row's last attempt, and not an earlier failure."""
    if request.method != "POST":
        return False
    if request.POST.get("attempt") == str(row.attempt):
        return True
    question.error = _("It ran and failed again meanwhile. Look at the new failure.")
    return False
