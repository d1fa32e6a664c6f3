"""Says in a sentence why a schedule did or did not run at an instant."""

from __future__ import annotations

from datetime import datetime, tzinfo
from typing import TypedDict

from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from scheduling.admin.schedulers.overdue import overdue
from scheduling.admin.schedulers.why_facts import Found
from scheduling.admin.ui.badges import badge, state_badge
from scheduling.admin.ui.links import execution_url
from scheduling.admin.ui.times import duration_between, format_minute, relative_time
from scheduling.core.lifecycle import State
from scheduling.core.occurrences import cron_key
from scheduling.core.text import visible_text
from scheduling.core.why_at import Answer, answer
from scheduling.models import Scheduler, SchedulerExecution

REASON_MAX_CHARS = 1_000


class Words(TypedDict):
    """An answer.

    Attributes:
        chip: the answer in a word.
        text: the answer in a sentence.
        address, number: the execution to which the answer links; empty if there is none.
        near: the occurrences before and after: a word, the instant, a badge, and the URL of the execution.
    """

    chip: SafeString
    text: str
    address: str
    number: str
    near: list[tuple[str, str, str, str]]


def words(schedule: Scheduler, found: Found, info: tzinfo) -> Words:
    """The answer in words. All times are in the zone `info`."""
    said = answer(found.facts)
    row = {Answer.RECORDED: found.row, Answer.LEFT_OUT: found.counting}.get(said)
    text = _of_row(row, said) if row is not None else _computed(schedule, found, said, info)
    chip = state_badge(row.state) if row is not None else _chip(said)
    return {
        "chip": chip,
        "text": visible_text(text, REASON_MAX_CHARS + 200),
        "address": execution_url(row.pk) if row is not None else "",
        "number": _("execution %(id)s") % {"id": row.pk} if row is not None else "",
        "near": _near(found, info) if said in (Answer.NOT_DUE, Answer.NO_RECORD, Answer.OTHER_TIMES) else [],
    }


def _of_row(row: SchedulerExecution, said: Answer) -> str:
    reason = visible_text(row.reason, REASON_MAX_CHARS) or _("No reason was recorded.")
    if said is Answer.LEFT_OUT or row.state == State.SKIPPED.value:
        return _("It did not run. %(reason)s") % {"reason": reason}
    match row.state:
        case State.SUCCEEDED.value:
            took = duration_between(row.started_at, row.finished_at)
            return _("It ran and succeeded in %(took)s.") % {"took": took}
        case State.FAILED.value:
            return _("It ran and failed: %(error)s.") % {
                "error": visible_text(row.error_class, 80) or _("unknown error")
            }
        case State.DISCARDED.value:
            return _("It ran and failed, and the failure was discarded.")
        case State.RUNNING.value:
            return _("It is running now.")
        case State.CANCELLED.value:
            return _("It was cancelled. %(reason)s") % {"reason": reason}
    return _("It is on record and has not ended yet.")


def _computed(schedule: Scheduler, found: Found, said: Answer, info: tzinfo) -> str:
    """The answer if no execution is on record."""
    facts, pause = found.facts, _pause(found, schedule, info)
    match said:
        case Answer.WILL_RUN | Answer.NOT_DUE:
            return _by_times(schedule, found, said)
        case Answer.WILL_BE_LEFT_OUT:
            return _("It is due then, but will not run unless it is resumed. %(pause)s") % {"pause": pause}
        case Answer.PAUSED:
            return _("It did not run. %(pause)s") % {"pause": pause}
        case Answer.WAITS:
            text = _("It fell due, and no producer has claimed it yet.")
            return " ".join([text, *overdue(schedule, facts.now)[1:]])
        case Answer.NOT_CREATED | Answer.OTHER_TIMES:
            return _not_planned(found, said, info)
    return _("It was due, but nothing is on record. Old history is deleted by the cleanup.")


def _by_times(schedule: Scheduler, found: Found, said: Answer) -> str:
    """The answer if it follows from the present times alone."""
    facts, error = found.facts, found.problem or schedule.plan_error
    if error:
        return _("It is not planned: %(error)s") % {"error": error}
    if said is Answer.WILL_RUN:
        return _("It is due then, %(when)s.") % {"when": relative_time(facts.at, facts.now)}
    return _("It was not due then.") if facts.at <= facts.now else _("It is not due then.")


def _not_planned(found: Found, said: Answer, info: tzinfo) -> str:
    facts = found.facts
    if said is Answer.NOT_CREATED:
        created = format_minute(facts.created_at, info)
        return _("It did not run: the schedule was created later, at %(time)s.") % {"time": created}
    since = format_minute(facts.planned_at, info) if facts.planned_at is not None else ""
    text = _("It was not planned then: it has its present times only since %(time)s. No earlier run is on record.")
    return text % {"time": since}


def _pause(found: Found, schedule: Scheduler, info: tzinfo) -> str:
    """Since when the schedule is paused, by whom and why."""
    facts = found.facts
    if facts.paused_at is None:
        return _("It is paused.")
    since = {"time": format_minute(facts.paused_at, info)}
    text = _("It is paused since %(time)s.") % since
    if schedule.paused_by:
        who = since | {"who": visible_text(schedule.paused_by, 80)}
        text = _("It is paused since %(time)s by %(who)s.") % who
    if schedule.paused_because:
        text = f"{text.rstrip('.')}: {visible_text(schedule.paused_because, 300).rstrip('.')}."
    return text


def _chip(said: Answer) -> SafeString:
    match said:
        case Answer.WILL_RUN:
            return badge(_("due"), "clock", "wait")
        case Answer.WAITS:
            return badge(_("late"), "warn", "bad")
        case Answer.PAUSED | Answer.WILL_BE_LEFT_OUT:
            return badge(_("paused"), "pause", "off")
        case Answer.NO_RECORD:
            return badge(_("not on record"), "dot", "warn")
        case Answer.NOT_CREATED | Answer.OTHER_TIMES:
            return badge(_("not planned"), "dot", "off")
    return badge(_("not due"), "dot", "off")


def _near(found: Found, info: tzinfo) -> list[tuple[str, str, str, str]]:
    """The occurrences before and after the instant, with their executions."""
    lines = []
    for word, instant in ((_("Before:"), found.before), (_("After:"), found.after)):
        if instant is not None:
            lines.append((word, *_occurrence(found, instant, info)))
    return lines


def _occurrence(found: Found, instant: datetime, info: tzinfo) -> tuple[str, str, str]:
    row = (found.executions or {}).get(cron_key(instant))
    said = format_minute(instant, info)
    return (said, "", "") if row is None else (said, state_badge(row.state), execution_url(row.pk))
