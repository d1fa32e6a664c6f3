"""Badges show a status by an icon, a word and a colour. Each of the three is enough to recognise the status."""

from __future__ import annotations

from datetime import datetime

from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext_lazy as _

from scheduling.admin.ui.times import format_duration
from scheduling.core.health import Health
from scheduling.core.lifecycle import State
from scheduling.core.text import visible_text
from scheduling.handlers import UnknownHandler, find
from scheduling.models import AlertMessage, AlertRule, Attempt, Breaker, Process
from scheduling.models.labels import HEALTH as HEALTH_LABELS
from scheduling.models.labels import STATES as LABELS

# SVG paths in an area of 12 x 12 units. Font characters are not used as icons, because a font may lack a character or
# show an emoji instead.
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

STATES: dict[str, tuple[str, str]] = {
    State.BLOCKED: ("pause", "wait"),
    State.CLAIMED: ("hand", "wait"),
    State.QUEUED: ("clock", "wait"),
    State.RUNNING: ("play", "busy"),
    State.RETRYING: ("again", "warn"),
    State.SUCCEEDED: ("check", "good"),
    State.FAILED: ("cross", "bad"),
    State.CANCELLED: ("stop", "off"),
    State.DISCARDED: ("bin", "off"),
    State.SKIPPED: ("skip", "off"),
}
"""The icon and the tone of each state. The badge's word is the state's label in the Django model."""

OUTCOMES: dict[str, tuple[str, str]] = {
    Attempt.Outcome.SUCCEEDED: ("check", "good"),
    Attempt.Outcome.FAILED: ("cross", "bad"),
    Attempt.Outcome.TIMED_OUT: ("clock", "bad"),
    Attempt.Outcome.CRASHED: ("warn", "bad"),
    Attempt.Outcome.CANCELLED: ("stop", "off"),
    Attempt.Outcome.INTERRUPTED: ("pause", "warn"),
    Attempt.Outcome.SNOOZED: ("clock", "wait"),
    Attempt.Outcome.SKIPPED: ("skip", "off"),
    Attempt.Outcome.FAILED_PROBE: ("cross", "warn"),
}
"""The icon and the tone of each outcome. The badge's word is the outcome's label in the Django model."""

HEALTH: dict[Health, tuple[str, str]] = {
    Health.FAILING: ("cross", "bad"),
    Health.SKIPPED: ("skip", "warn"),
    Health.LATE: ("clock", "warn"),
    Health.NEVER_RAN: ("dot", "wait"),
    Health.RUNNING: ("play", "busy"),
    Health.HEALTHY: ("check", "good"),
    Health.PAUSED: ("pause", "off"),
    Health.ENDED: ("stop", "off"),
}
"""The icon and the tone of each health of a schedule."""

UNKNOWN = ("dot", "off")
"""The icon and the tone of a value that this version of the code does not know."""

NO_CODE = _("code missing")
"""The words for a target whose code is not registered in this web process."""

_ICON = '<svg class="sch-icon" viewBox="0 0 12 12" aria-hidden="true" focusable="false"><path d="{}"/></svg>'


def icon(name: str) -> SafeString:
    """An icon. It is hidden from screen readers, because the word beside it says the same."""
    return mark_safe(_ICON.format(_PATHS[name]))  # noqa: S308 - a constant of this module


def badge(word: object, icon_name: str, tone: str, title: object = "") -> SafeString:
    """A badge. The tone is `good`, `bad`, `warn`, `busy`, `wait` or `off`."""
    said = format_html(' title="{}"', visible_text(title, 300)) if title else ""
    return format_html('<span class="sch-chip sch-{}"{}>{}{}</span>', tone, said, icon(icon_name), str(word))


def state_badge(state: str, title: object = "") -> SafeString:
    """The state of an execution. If this version of the code does not know the state, the badge has the stored text."""
    return badge(LABELS.get(state, state), *STATES.get(state, UNKNOWN), title)


def outcome_badge(outcome: str) -> SafeString:
    """The outcome of an attempt."""
    return badge(dict(Attempt.Outcome.choices).get(outcome, outcome), *OUTCOMES.get(outcome, UNKNOWN))


def health_badge(health: Health, title: object = "") -> SafeString:
    """The health of a schedule."""
    return badge(HEALTH_LABELS[health], *HEALTH[health], title)


def active_badge(active: bool) -> SafeString:
    """Whether a schedule is active or paused."""
    return badge(_("active"), "check", "good") if active else badge(_("paused"), "pause", "off")


def breaker_badge(state: str) -> SafeString:
    """The state of a circuit breaker."""
    look = {"closed": ("check", "good"), "open": ("pause", "bad"), "half_open": ("play", "warn")}
    return badge(dict(Breaker.States.choices).get(state, state), *look.get(state, UNKNOWN))


SEVERITIES: dict[str, tuple[str, str]] = {
    AlertRule.Severities.CRITICAL: ("cross", "bad"),
    AlertRule.Severities.WARNING: ("warn", "warn"),
    AlertRule.Severities.INFO: ("dot", "wait"),
}
"""The icon and the tone of each severity of an alert."""


def severity_badge(severity: str) -> SafeString:
    """How urgent an alert is."""
    return badge(dict(AlertRule.Severities.choices).get(severity, severity), *SEVERITIES.get(severity, UNKNOWN))


MESSAGE_STATES: dict[str, tuple[str, str]] = {
    AlertMessage.State.WAITING: ("clock", "wait"),
    AlertMessage.State.SENDING: ("play", "busy"),
    AlertMessage.State.SENT: ("check", "good"),
    AlertMessage.State.GIVEN_UP: ("cross", "bad"),
    AlertMessage.State.ASIDE: ("skip", "off"),
}
"""The icon and the tone of each state of a message of alerts."""


def silence(heartbeat_at: datetime, now: datetime) -> str:
    """How long a process has been silent, such as `27 s`, and in whole minutes from two minutes on."""
    seconds = max((now - heartbeat_at).total_seconds(), 0.0)
    return format_duration(seconds if seconds < 120 else seconds // 60 * 60)


def process_badge(process: Process, now: datetime) -> SafeString:
    """Whether a process is alive, silent or stopped. A silent process died or cannot reach the database."""
    if process.is_alive(now):
        return badge(_("alive"), "check", "good")
    if process.is_silent(now):
        told = _("Two heartbeats were missed: the process was killed, or it cannot reach the database.")
        return badge(_("silent for %(time)s") % {"time": silence(process.heartbeat_at, now)}, "warn", "bad", told)
    return badge(_("stopped"), "stop", "off")


def registered_badge(type_: str, name: str) -> SafeString:
    """Whether this web process knows the code behind a target row."""
    try:
        find(type_, name)
    except UnknownHandler as error:
        return badge(NO_CODE, "warn", "bad", error)
    return badge(_("registered"), "check", "good")
