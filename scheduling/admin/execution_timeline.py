"""An execution's way in time: due, claimed, published, each attempt and each wait, as a list and as a bar."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from scheduling.admin import svg
from scheduling.admin.attempts import exit_text
from scheduling.admin.chips import OUTCOMES, STATES
from scheduling.admin.filters import TRIGGERS
from scheduling.admin.parts import length, outcome_chip, relative, shown, stamp, state_chip, took
from scheduling.core.lifecycle import State
from scheduling.models import Attempt, SchedulerExecution

MOST = 20
"""Attempts that the list tells of, the last ones; the table below it has more."""

WIDTH, HEIGHT, LEAST = 720, 22, 4


@dataclass(frozen=True)
class Step:
    """One line of the list; `gap` is how long after the step before it."""

    at: str
    gap: str
    what: Any
    about: Any = ""


@dataclass(frozen=True)
class Span:
    """A stretch of the bar: of a wait, or of an attempt in its outcome's tone."""

    seconds: float
    tone: str
    title: str


@dataclass
class _Event:
    at: datetime | None
    what: Any
    about: Any = ""


def timeline(
    row: SchedulerExecution, attempts: Sequence[Attempt], now: datetime
) -> tuple[list[Step], SafeString | str]:
    """The list and the bar.

    Args:
        attempts: those that ended, the first one first.
    """
    return _steps(_events(row, attempts, now), now), bar(spans(row, attempts, now))


def _events(row: SchedulerExecution, attempts: Sequence[Attempt], now: datetime) -> list[_Event]:
    trigger = dict(TRIGGERS).get(row.trigger, row.trigger)
    if row.requested_by:
        trigger = _("%(trigger)s (%(who)s)") % {"trigger": trigger, "who": shown(row.requested_by)}
    events = [
        _Event(row.scheduled_at, _("due"), trigger),
        _Event(row.executed_at, _("claimed"), _("by %(who)s") % {"who": shown(row.container_id)}),
    ]
    published = _published(row)
    for each in attempts[-MOST:]:
        if published is not None and published.at is not None and published.at <= each.started_at:
            events.append(published)
            published = None
        events += _attempt(row, each, now)
    if published is not None:
        events.append(published)
    return events + _present(row, now)


def _published(row: SchedulerExecution) -> _Event | None:
    if row.published_at is None or row.state == State.FAILED.value:
        return None  # of a failed one it tells of the parked message
    return _Event(
        row.published_at, _("published"), _("into the queue “%(queue)s”") % {"queue": row.get_queue_display()}
    )


def _attempt(row: SchedulerExecution, each: Attempt, now: datetime) -> list[_Event]:
    where = _("in %(consumer)s") % {"consumer": shown(each.consumer)}
    if each.pid:
        where = _("%(where)s, process %(pid)s") % {"where": where, "pid": each.pid}
    started = _Event(each.started_at, _("attempt %(number)s started") % {"number": each.number}, where)
    took_ = _("after %(time)s") % {"time": took(each.started_at, each.finished_at)}
    about = format_html_join(
        ", ", "{}", ((part,) for part in (took_, exit_text(each), shown(each.error_class, 120)) if part)
    )
    ended = _Event(
        each.finished_at,
        format_html("{} {}", _("attempt %(number)s") % {"number": each.number}, outcome_chip(each.outcome)),
        about,
    )
    events = [started, ended]
    if each.retry_at is not None:
        wait = length(max(0.0, (each.retry_at - each.finished_at).total_seconds()))
        due = row.state == State.RETRYING.value and each.number == row.attempt
        left = _("until %(time)s") % {"time": relative(each.retry_at, now)} if due else ""
        events.append(_Event(None, _("waits %(time)s before the next attempt") % {"time": wait}, left))
    return events


def _present(row: SchedulerExecution, now: datetime) -> list[_Event]:
    """What goes on, or how it ended where no attempt says so."""
    if row.state == State.RUNNING.value:
        where = _("in %(consumer)s") % {"consumer": shown(row.consumer)}
        if row.pid:
            where = _("%(where)s, process %(pid)s") % {"where": where, "pid": row.pid}
        return [
            _Event(row.started_at, _("attempt %(number)s started") % {"number": row.attempt}, where),
            _Event(None, state_chip(row.state), _("for %(time)s so far") % {"time": took(row.started_at, now)}),
        ]
    if row.finished_at is not None and row.state in STATES:
        about = _("%(time)s after it was due") % {"time": took(row.scheduled_at, row.finished_at)}
        return [_Event(row.finished_at, state_chip(row.state), about)]
    return [_Event(None, state_chip(row.state))]


def _steps(events: Sequence[_Event], now: datetime) -> list[Step]:
    steps, before = [], None
    for each in events:
        gap = ""
        if each.at is not None and before is not None and (seconds := (each.at - before).total_seconds()) > 0:
            gap = f"+{length(seconds)}"
        steps.append(Step(stamp(each.at) if each.at is not None else "", gap, each.what, each.about))
        before = each.at or before
    return steps


def spans(row: SchedulerExecution, attempts: Sequence[Attempt], now: datetime) -> list[Span]:
    """The stretches from the due instant to the end, or to now while it goes on."""
    found: list[Span] = []
    at = row.scheduled_at

    def until(instant: datetime | None, tone: str, text: str) -> None:
        nonlocal at
        if instant is None:
            return
        seconds = (instant - at).total_seconds()
        if seconds > 0 or tone != "wait":
            found.append(Span(max(seconds, 0.0), tone, f"{text}: {length(max(seconds, 0.0))}"))
            at = max(at, instant)

    until(row.executed_at, "wait", _("waited to be claimed"))
    for each in attempts[-MOST:]:
        until(each.started_at, "wait", _("waited for attempt %(number)s") % {"number": each.number})
        tone = OUTCOMES[Attempt.Outcome(each.outcome)][1] if each.outcome in Attempt.Outcome else "off"
        label = Attempt.Outcome(each.outcome).label if each.outcome in Attempt.Outcome else shown(each.outcome)
        until(each.finished_at, tone, _("attempt %(number)s %(outcome)s") % {"number": each.number, "outcome": label})
    if row.state == State.RUNNING.value:
        until(row.started_at, "wait", _("waited for attempt %(number)s") % {"number": row.attempt})
        until(now, "busy", _("attempt %(number)s runs") % {"number": row.attempt})
    elif row.state in {State.CLAIMED.value, State.QUEUED.value, State.RETRYING.value}:
        until(now, "wait", _("waits"))
    return found


def bar(found: Sequence[Span]) -> SafeString | str:
    """The stretches in a row, each as wide as it was long, and wide enough to be seen; nothing for no length."""
    total = sum(each.seconds for each in found)
    if not found or total <= 0:
        return ""
    widths = [max(LEAST, each.seconds / total * WIDTH) for each in found]
    scale = WIDTH / sum(widths)
    shapes, x = [], 0.0
    for each, width in zip(found, widths, strict=True):
        wide = round(width * scale, 1)
        wait = each.tone == "wait"
        inset = HEIGHT / 3 if wait else 0
        shapes.append(svg.rect(round(x, 1), inset, wide, HEIGHT - 2 * inset, f"sch-span-{each.tone}", each.title))
        x += wide
    ran = sum(1 for each in found if each.tone != "wait")
    text = ngettext("%(ran)d attempt in %(time)s: %(what)s", "%(ran)d attempts in %(time)s: %(what)s", ran)
    label = text % {"ran": ran, "time": length(total), "what": "; ".join(each.title for each in found)}
    return svg.picture(WIDTH, HEIGHT, label, shapes, css="sch-way", stretched=True)
