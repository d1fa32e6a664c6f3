"""Chips: a status as icon, word and colour at once, so that none of the three is needed to read it."""

from __future__ import annotations

from datetime import datetime

from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

from scheduling.core.lifecycle import State
from scheduling.core.text import shown
from scheduling.models import Attempt, Process
from scheduling.reconcile import SILENT_AFTER
from scheduling.registry import UnknownHandler, find

# Strokes on a 12 x 12 field. Drawn, because a font may lack a symbol or make a picture of it.
_PATHS = {
    "check": "M2.5 6.5 5 9l4.5-6",
    "cross": "M3 3l6 6M9 3l-6 6",
    "play": "M4 2.5v7l5.5-3.5z",
    "clock": "M6 1.5a4.5 4.5 0 1 0 0 9 4.5 4.5 0 0 0 0-9M6 3.5V6l1.8 1.2",
    "again": "M9.8 4.2A4.2 4.2 0 1 0 10.2 7M10 1.8v2.6H7.4",
    "stop": "M3 3h6v6H3z",
    "skip": "M3 2.5l4 3.5-4 3.5zM9 2.5v7",
    "bin": "M2.5 3.5h7M5 3.5v-1h2v1M3.5 3.5l.5 6h4l.5-6",
    "pause": "M4 2.5v7M8 2.5v7",
    "warn": "M6 1.8 11 10H1zM6 5v2.2M6 8.6v.1",
    "hand": "M2 6h8M7 3l3 3-3 3",
    "dot": "M6 4.5a1.5 1.5 0 1 0 0 3 1.5 1.5 0 0 0 0-3",
}

STATES = {
    State.CLAIMED: (_("claimed"), "hand", "wait"),
    State.QUEUED: (_("queued"), "clock", "wait"),
    State.RUNNING: (_("running"), "play", "busy"),
    State.RETRYING: (_("retrying"), "again", "warn"),
    State.SUCCEEDED: (_("succeeded"), "check", "good"),
    State.FAILED: (_("failed"), "cross", "bad"),
    State.CANCELLED: (_("cancelled"), "stop", "off"),
    State.DISCARDED: (_("discarded"), "bin", "off"),
    State.SKIPPED: (_("skipped"), "skip", "off"),
}
"""Each state's word, icon and tone."""

OUTCOMES = {
    Attempt.Outcome.SUCCEEDED: ("check", "good"),
    Attempt.Outcome.FAILED: ("cross", "bad"),
    Attempt.Outcome.TIMED_OUT: ("clock", "bad"),
    Attempt.Outcome.CRASHED: ("warn", "bad"),
    Attempt.Outcome.CANCELLED: ("stop", "off"),
    Attempt.Outcome.INTERRUPTED: ("pause", "warn"),
}
"""Each outcome's icon and tone; its word is the choice's own."""

_ICON = '<svg class="sch-icon" viewBox="0 0 12 12" aria-hidden="true" focusable="false"><path d="{}"/></svg>'


def icon(name: str) -> SafeString:
    """One of the drawn icons; hidden from screen readers, for a word stands beside it."""
    return mark_safe(_ICON.format(_PATHS[name]))  # noqa: S308 - a constant of this module


def chip(word: object, icon_name: str, tone: str, title: object = "") -> SafeString:
    """A chip of one's own. Tones: `good`, `bad`, `warn`, `busy`, `wait`, `off`."""
    if title:
        return format_html(
            '<span class="sch-chip sch-{}" title="{}">{}{}</span>', tone, shown(title, 300), icon(icon_name), str(word)
        )
    return format_html('<span class="sch-chip sch-{}">{}{}</span>', tone, icon(icon_name), str(word))


def state_chip(state: str, title: object = "") -> SafeString:
    """Where an execution stands; a state of a newer version is shown by its bare word."""
    try:
        word, icon_name, tone = STATES[State(state)]
    except ValueError:
        return chip(state, "dot", "off", title)
    return chip(word, icon_name, tone, title)


def outcome_chip(outcome: str) -> SafeString:
    """How an attempt ended."""
    try:
        known = Attempt.Outcome(outcome)
    except ValueError:
        return chip(outcome, "dot", "off")
    return chip(known.label, *OUTCOMES[known])


def active_chip(active: bool) -> SafeString:
    """Whether a schedule is switched on."""
    return chip(pgettext_lazy("switched", "on"), "check", "good") if active else chip(_("off"), "pause", "off")


def process_chip(process: Process, now: datetime) -> SafeString:
    """Alive, silent (it stopped without saying so, or cannot reach the database), or stopped in order."""
    if process.stopped_at is not None:
        return chip(_("stopped"), "stop", "off")
    if process.heartbeat_at < now - SILENT_AFTER:
        return chip(_("silent"), "warn", "bad", _("No heartbeat for more than a minute."))
    return chip(_("alive"), "check", "good")


def registered_chip(type_: str, name: str) -> SafeString:
    """Whether this web process knows the code behind a target row."""
    try:
        find(type_, name)
    except UnknownHandler as error:
        return chip(_("not registered"), "warn", "bad", error)
    return chip(_("registered"), "check", "good")
