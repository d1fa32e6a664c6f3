"""A backfill in words: its state as a badge, and its progress as a sentence."""

from __future__ import annotations

from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from scheduling.admin.ui.badges import badge
from scheduling.models import Backfill

STATES: dict[str, tuple[str, str]] = {
    Backfill.State.RUNNING: ("again", "busy"),
    Backfill.State.PAUSED: ("pause", "warn"),
    Backfill.State.DONE: ("check", "good"),
    Backfill.State.CANCELLED: ("stop", "off"),
    Backfill.State.STOPPED: ("stop", "bad"),
}
"""The icon and tone of each state. The word for the state is the label in Backfill.State."""


def chip(row: Backfill) -> SafeString:
    """The state of a backfill as a badge. If the state is unknown, the badge shows the stored text."""
    return badge(row.get_state_display(), *STATES.get(row.state, ("dot", "off")))


def in_words(row: Backfill) -> str:
    """The progress of a backfill as a sentence, such as `140 of 500 instants are done; runs made: 130.`"""
    said = _("%(position)s of %(total)s instants are done; runs made: %(created)s")
    text = said % {"position": row.position, "total": row.total, "created": row.created}
    if row.existing:
        text += "; " + _("on record already: %(count)s") % {"count": row.existing}
    return f"{text}."
