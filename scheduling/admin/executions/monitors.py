"""What monitors were told about an execution, and what they were not told."""

from __future__ import annotations

from typing import Any

from django.utils.html import format_html
from django.utils.translation import gettext as _

from scheduling.admin.ui.badges import UNKNOWN, badge
from scheduling.admin.ui.times import time_tag
from scheduling.core.known_sentences import for_reader
from scheduling.core.pings import Kind
from scheduling.core.text import visible_text
from scheduling.models import Ping, SchedulerExecution
from scheduling.pings.sentry import NO_CONFIG

SHOWN = 50
"""At most so many pings are listed, the newest ones."""

STATES: dict[str, tuple[str, str]] = {
    Ping.State.WAITING: ("clock", "wait"),
    Ping.State.SENT: ("check", "good"),
    Ping.State.DROPPED: ("cross", "bad"),
}
"""The icon and the tone of each state."""


def monitors(row: SchedulerExecution) -> list[dict[str, Any]]:
    """The template context: one line for each ping, the oldest first. Empty if no monitor is told about the run."""
    found = list(Ping.objects.filter(execution=row.pk).order_by("-pk")[:SHOWN])
    return [
        {
            "monitor": visible_text(ping.get_kind_display()),
            "event": visible_text(ping.get_event_display()),
            "chip": badge(ping.get_state_display(), *STATES.get(ping.state, UNKNOWN)),
            "happened": time_tag(ping.created_at),
            "about": _about(ping, row),
        }
        for ping in reversed(found)
    ]


def _about(ping: Ping, row: SchedulerExecution) -> str:
    if ping.state == Ping.State.SENT:
        told = format_html(_("Told {host}, {time}."), host=visible_text(ping.host, 120), time=time_tag(ping.at))
        has_config = ping.kind != Kind.SENTRY or row.scheduler is None or bool(row.scheduler.schedule)
        return told if has_config else format_html("{} {}", told, _(NO_CONFIG))
    error = for_reader(ping.error, 500)
    if ping.state == Ping.State.DROPPED:
        return _("Not delivered: %(reason)s") % {"reason": error}
    return _("Tries so far: %(tries)s. %(reason)s") % {"tries": visible_text(ping.tries, 20), "reason": error}
