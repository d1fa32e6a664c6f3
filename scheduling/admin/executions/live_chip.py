"""The state of an execution in a message. `poll.js` shows the state, and updates it until the execution has ended."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from scheduling.admin.common.pages import READ, Page, Pages
from scheduling.admin.ui.badges import state_badge
from scheduling.admin.ui.links import admin_url
from scheduling.admin.ui.text import is_number
from scheduling.core.lifecycle import OPEN_STATES
from scheduling.models.visibility import visibility_of

END = "<span data-poll-end>{}</span>"
"""The mark that the state will not change any more."""


class LiveChip(Pages):
    """Adds the address that sends the present state to `poll.js`."""

    # The view gets the key and not the row. For a deleted row, Django would redirect, and the script would take the
    # redirect for the end of the session.
    pages: tuple[Page, ...] = (Page("chip", "view", "<path:key>/chip/", READ),)

    def chip_view(self, request: HttpRequest, key: str) -> HttpResponse:
        """Sends the state as a badge, with the mark END if the execution has ended or is deleted."""
        rows = visibility_of(request.user).executions().filter(pk=int(key) if is_number(key) else -1)
        state = rows.values_list("state", flat=True).first()
        shown = state_badge(state) if state is not None else _("deleted")
        html = shown if state in OPEN_STATES else format_html(END, shown)
        return HttpResponse(html, headers={"X-Part": "chip", "Cache-Control": "no-store"})


def live_chip(pk: int) -> SafeString:
    """An empty place that `poll.js` fills. Without JavaScript it stays empty, because the state would soon be wrong."""
    address = admin_url("scheduling_schedulerexecution_chip", pk)
    return format_html(' <span role="status" data-poll-url="{}" data-poll-seconds="2"></span>', address)
