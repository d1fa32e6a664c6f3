"""The state of an execution in a message. `poll.js` shows the state, and updates it until the execution has ended."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from scheduling.admin.common.pages import READ, Page, Pages
from scheduling.admin.ui.badges import state_badge
from scheduling.admin.ui.links import admin_url
from scheduling.core.lifecycle import CANCELLABLE
from scheduling.models import SchedulerExecution


class LiveChip(Pages):
    """Adds the address that sends the present state to `poll.js`."""

    pages: tuple[Page, ...] = (Page("chip", "view", methods=READ),)

    def chip_view(self, request: HttpRequest, row: SchedulerExecution) -> HttpResponse:
        """Sends the state as a badge. The mark `data-poll-end` says that it will not change any more."""
        goes_on = row.state in CANCELLABLE
        html = (
            state_badge(row.state) if goes_on else format_html("<span data-poll-end>{}</span>", state_badge(row.state))
        )
        return HttpResponse(html, headers={"X-Part": "chip", "Cache-Control": "no-store"})


def live_chip(pk: int) -> SafeString:
    """An empty place that `poll.js` fills. Without JavaScript it stays empty, because the state would soon be wrong."""
    address = admin_url("scheduling_schedulerexecution_chip", pk)
    return format_html(' <span role="status" data-poll-url="{}" data-poll-seconds="2"></span>', address)
