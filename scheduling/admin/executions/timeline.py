"""Draws the timeline of an execution as a list and as a bar.

The timeline shows when the execution was due, claimed and published. It also shows each attempt, and how long the
execution waited between the attempts.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple

from django.utils.html import format_html
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from scheduling.admin.executions.attempts import exit_text
from scheduling.admin.executions.lookup import trigger_words
from scheduling.admin.ui import svg
from scheduling.admin.ui.badges import OUTCOMES, STATES, UNKNOWN, outcome_badge, state_badge
from scheduling.admin.ui.times import duration_between, format_duration, relative_time, time_tag
from scheduling.core.lifecycle import CANCELLED_AT_ONCE, State
from scheduling.core.text import visible_text
from scheduling.models import Attempt, SchedulerExecution

SHOWN_ATTEMPTS = 20
"""The list shows only the newest attempts, at most this many. The page's table of attempts shows more."""

PARKED = {State.FAILED.value, State.DISCARDED.value}
"""The states in which `published_at` may be the time when the message was parked in the failed queue."""

WIDTH, HEIGHT, LEAST = 720, 22, 4


class Event(NamedTuple):
    """Something that happened to the execution. An event without a time belongs to the previous event."""

    at: datetime | None
    what: Any
    about: Any = ""


class Step(NamedTuple):
    """One line of the list. `gap` is the time since the previous step."""

    at: str
    gap: str
    what: Any
    about: Any


class Span(NamedTuple):
    """A part of the bar: a wait or an attempt. The colour of an attempt shows its outcome."""

    seconds: float
    tone: str
    title: str


def timeline(row: SchedulerExecution, attempts: Sequence[Attempt], now: datetime) -> tuple[list[Step], str]:
    """The list of steps, and the bar as SVG.

    Args:
        attempts: the attempts that have ended, the oldest first.
    """
    return _steps(_events(row, attempts, now)), bar(spans(row, attempts, now))


def _events(row: SchedulerExecution, attempts: Sequence[Attempt], now: datetime) -> list[Event]:
    events = [
        Event(row.scheduled_at, _("due"), _("trigger: %(trigger)s") % {"trigger": trigger_words(row)}),
        Event(row.executed_at, _("claimed"), _("by %(who)s") % {"who": visible_text(row.container_id)}),
    ]
    if row.assigned_at is not None:
        events.insert(1, Event(row.assigned_at, _("to start"), _("its schedule is spread, or a calendar held it")))
    published_at, parked_at = _confirmed(row, attempts)
    where = _("into the queue “%(queue)s”") % {"queue": row.queue_label}
    # A later publish overwrites the time of the first one. The line stays, because the past does not change.
    started_at = attempts[0].started_at if attempts else row.started_at
    if started_at is not None and (published_at is None or published_at > started_at):
        events.append(Event(None, _("published"), where))
        again = Event(published_at, _("published for the next attempt"), where)
    else:
        again = Event(published_at, _("published"), where)
    for attempt in attempts[-SHOWN_ATTEMPTS:]:
        if published_at is not None and published_at <= attempt.started_at:
            events.append(again)
            published_at = None
        events += _attempt(row, attempt, now)
    if published_at is not None:
        events.append(again)
    if parked_at is not None:
        events.append(Event(parked_at, _("parked"), _("in the failed queue")))
    return events + _present(row, now)


def _confirmed(row: SchedulerExecution, attempts: Sequence[Attempt]) -> tuple[datetime | None, datetime | None]:
    """When the broker confirmed the message of an attempt, and when it confirmed the parked message.

    One column holds both times. After a permanent failure, it is the time of parking.
    """
    if row.state not in PARKED or row.published_at is None:
        return row.published_at, None
    if not attempts or row.published_at >= attempts[-1].finished_at:
        return None, row.published_at
    return row.published_at, None


def _started(ran: Attempt | SchedulerExecution, number: int) -> Event:
    where = _("in %(consumer)s") % {"consumer": visible_text(ran.consumer)}
    if ran.pid:
        where = _("%(where)s, process %(pid)s") % {"where": where, "pid": ran.pid}
    return Event(ran.started_at, _("attempt %(number)s started") % {"number": number}, where)


def _attempt(row: SchedulerExecution, attempt: Attempt, now: datetime) -> list[Event]:
    took = _("after %(time)s") % {"time": duration_between(attempt.started_at, attempt.finished_at)}
    parts = (took, exit_text(attempt), visible_text(attempt.error_class, 120))
    what = format_html("{} {}", _("attempt %(number)s") % {"number": attempt.number}, outcome_badge(attempt.outcome))
    events = [
        _started(attempt, attempt.number),
        Event(attempt.finished_at, what, ", ".join(part for part in parts if part)),
    ]
    if attempt.retry_at is not None:
        wait = format_duration((attempt.retry_at - attempt.finished_at).total_seconds())
        due = row.state == State.RETRYING.value and attempt.number == row.attempt
        when = {"time": wait, "when": relative_time(attempt.retry_at, now)}
        text = _("next attempt due %(when)s") if due else _("next attempt due %(time)s later")
        events.append(Event(None, text % when))
    return events


def _present(row: SchedulerExecution, now: datetime) -> list[Event]:
    """The last events: the running attempt, or the end of the execution, or the state in which the execution waits."""
    badge = state_badge(row.state)
    if row.state == State.RUNNING.value:
        so_far = _("for %(time)s so far") % {"time": duration_between(row.started_at, now)}
        return [_started(row, row.attempt), Event(None, badge, so_far)]
    if row.finished_at is not None and row.state in STATES:
        about = _("%(time)s after it was due") % {"time": duration_between(row.should_start_at, row.finished_at)}
        return [Event(row.finished_at, badge, about)]
    return [Event(None, badge)]


def _steps(events: Sequence[Event]) -> list[Step]:
    steps, before = [], None
    for event in events:
        gap = ""
        if event.at is not None and before is not None and (seconds := (event.at - before).total_seconds()) > 0:
            gap = f"+{format_duration(seconds)}"
        steps.append(Step(time_tag(event.at) if event.at is not None else "", gap, event.what, event.about))
        before = event.at or before
    return steps


def spans(row: SchedulerExecution, attempts: Sequence[Attempt], now: datetime) -> list[Span]:
    """The parts of the bar. The bar begins when the run was to start, and ends with the last attempt, or now."""
    found: list[Span] = []
    at = row.should_start_at

    def until(instant: datetime | None, tone: str, text: str) -> None:
        nonlocal at
        if instant is None:
            return
        seconds = (instant - at).total_seconds()
        if seconds > 0 or tone != "wait":
            found.append(Span(max(seconds, 0.0), tone, f"{text}: {format_duration(max(seconds, 0.0))}"))
            at = max(at, instant)

    until(row.executed_at, "wait", _("waited to be claimed"))
    for attempt in attempts[-SHOWN_ATTEMPTS:]:
        until(attempt.started_at, "wait", _("waited for attempt %(number)s") % {"number": attempt.number})
        _icon, tone = OUTCOMES.get(attempt.outcome, UNKNOWN)
        outcome = visible_text(attempt.get_outcome_display())
        ended = _("attempt %(number)s %(outcome)s") % {"number": attempt.number, "outcome": outcome}
        until(attempt.finished_at, tone, ended)
    if row.state == State.RUNNING.value:
        until(row.started_at, "wait", _("waited for attempt %(number)s") % {"number": row.attempt})
        until(now, "busy", _("attempt %(number)s runs") % {"number": row.attempt})
    elif row.state in CANCELLED_AT_ONCE:
        until(now, "wait", _("waits"))
    return found


def bar(found: Sequence[Span]) -> str:
    """The bar as SVG; empty if no time has passed.

    The width of a part shows the part's share of the total time. A very short part is made wide enough to be seen.
    """
    total = sum(span.seconds for span in found)
    if not found or total <= 0:
        return ""
    widths = [max(LEAST, span.seconds / total * WIDTH) for span in found]
    scale = WIDTH / sum(widths)
    shapes, x = [], 0.0
    for span, width in zip(found, widths, strict=True):
        wide = round(width * scale, 1)
        wait = span.tone == "wait"
        inset = HEIGHT / 3 if wait else 0
        shapes.append(svg.rect(round(x, 1), inset, wide, HEIGHT - 2 * inset, f"sch-span-{span.tone}", span.title))
        x += wide
    ran = sum(1 for span in found if span.tone != "wait")
    text = ngettext("%(ran)d attempt within %(time)s: %(what)s", "%(ran)d attempts within %(time)s: %(what)s", ran)
    label = text % {"ran": ran, "time": format_duration(total), "what": "; ".join(span.title for span in found)}
    return svg.picture(WIDTH, HEIGHT, label, shapes, css="sch-way", stretched=True)
