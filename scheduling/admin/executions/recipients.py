"""The recipients of an execution's messages, and what each of them got."""

from __future__ import annotations

from typing import Any

from django.db.models import Case, When
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from scheduling.admin.ui.badges import UNKNOWN, badge
from scheduling.admin.ui.times import time_tag
from scheduling.core.known_sentences import for_reader
from scheduling.core.targets import TARGET_KINDS
from scheduling.core.text import visible_text
from scheduling.models import Notification, SchedulerExecution

SHOWN = 100
"""At most this many recipients are listed."""

STATES: dict[str, tuple[str, str]] = {
    Notification.State.SENDING: ("hand", "busy"),
    Notification.State.SENT: ("check", "good"),
    Notification.State.WAITING: ("clock", "wait"),
    Notification.State.REFUSED: ("cross", "bad"),
}
"""The icon and the tone of each state."""


def recipients(row: SchedulerExecution) -> dict[str, Any]:
    """The template context: one line for each recipient. Empty if the execution sends no messages."""
    kind = TARGET_KINDS.get(row.type)
    if kind is None or not kind.sends:
        return {}
    rows = Notification.objects.filter(execution=row.pk)
    # An operator looks for the recipients without the message, so they come first.
    sent = Case(When(state=Notification.State.SENT, then=1), default=0)
    found = list(rows.order_by(sent, "pk")[:SHOWN])
    if not found:
        return {}
    return {
        "lines": [
            {
                "recipient": visible_text(line.recipient),
                "chip": badge(line.get_state_display(), *STATES.get(line.state, UNKNOWN)),
                "changed": time_tag(line.changed_at),
                "about": _about(line, row),
            }
            for line in found
        ],
        "more": rows.count() - SHOWN if len(found) == SHOWN else 0,
    }


def _about(line: Notification, row: SchedulerExecution) -> str:
    said = [for_reader(line.error, 500)] if line.error else []
    if line.unsure:
        copies = ngettext(
            "It was sent again, because %(count)d try ended without an answer of the server.",
            "It was sent again, because %(count)d tries ended without an answer of the server.",
            line.unsure,
        )
        said.append(copies % {"count": line.unsure})
        if line.kind == Notification.Kind.CHAT:
            said.append(_("The chat may show the message more than once."))
        elif line.kind == Notification.Kind.WEBHOOK:
            said.append(_("The webhook may have more than one copy. All copies have the same delivery id."))
        else:
            said.append(_("The recipient may have more than one copy. All copies have the same Message-ID."))
    elif line.state == Notification.State.SENDING and line.attempt < row.attempt:
        said.append(_("The attempt ended before the server answered. The next attempt sends it again."))
    return " ".join(said)
