"""Says in a sentence why a schedule did or did not run at an instant."""

from __future__ import annotations

from datetime import datetime, timedelta, tzinfo

from django.utils.translation import gettext as _

from scheduling.core.expected import Fate
from scheduling.core.known_sentences import for_reader, in_language
from scheduling.core.lifecycle import State, Trigger
from scheduling.core.occurrences import cron_key
from scheduling.core.text import visible_text
from scheduling.core.why_at import Answer, answer
from scheduling.models import Scheduler, SchedulerExecution
from scheduling.models.after import predecessor_words
from scheduling.models.timetable import is_asked_by_second
from scheduling.operations import executions
from scheduling.operations.actor import Actor
from scheduling.operations.moved_start import moved_words
from scheduling.operations.overdue import overdue
from scheduling.operations.refused import Refused
from scheduling.operations.schedule_words import zone_of
from scheduling.operations.times import duration_between, format_instant, format_minute, relative_time
from scheduling.operations.typed_instants import typed_instants
from scheduling.operations.waiting_words import waiting_words
from scheduling.operations.why_facts import Found, found
from scheduling.operations.why_shapes import NearShape, WhyShape

REASON_MAX_CHARS = 1_000
NEAR = (Answer.NOT_DUE, Answer.OUTSIDE, Answer.NO_RECORD, Answer.OTHER_TIMES)
"""The answers to which the occurrences before and after the instant are told."""


def why(actor: Actor, schedule: Scheduler, typed: str, now: datetime) -> list[WhyShape]:
    """Whether and why the schedule did or did not run at a typed instant. A local time that repeats has two answers.

    Args:
        schedule: a schedule that the actor sees.
        typed: see `typed_instants`.

    Raises:
        Refused: FORBIDDEN, because the answer tells of executions, too; INVALID if the text is no time.
    """
    actor.must(executions.VIEW)
    info = zone_of(schedule)
    chosen = typed_instants(typed, info, now, is_asked_by_second(schedule.schedule))
    if chosen is None:
        said = _("Type a time such as 03:00, or a date and a time such as %(example)s.")
        raise Refused.value("at", said % {"example": example(info, now)})
    note = skipped_words() if chosen.skipped else ""
    return [why_shape(schedule, found(schedule, actor.visible, at, now), info, note) for at in chosen.instants]


def example(info: tzinfo, now: datetime) -> str:
    """A date and time as a person may type it."""
    return f"{now.astimezone(info) - timedelta(days=2):%Y-%m-%d} 03:00"


def skipped_words() -> str:
    """What is told of a local time that the clocks skip."""
    return _("The clock skipped this time on that day. This is the answer for the first instant after it.")


def why_shape(schedule: Scheduler, known: Found, info: tzinfo, note: str = "") -> WhyShape:
    """The answer as a shape. The times in its text are in the zone `info`."""
    said, text, row = sentence(schedule, known, info)
    before, after = (_near(known, at) if said in NEAR else None for at in (known.before, known.after))
    return WhyShape(
        schedule_id=schedule.pk, at=known.facts.at, answer=said.value, text=text, note=note,
        execution=None if row is None else row.pk, state=None if row is None else row.state,
        before=before, after=after,
    )  # fmt: skip


def _near(known: Found, at: datetime | None) -> NearShape | None:
    if at is None:
        return None
    row = (known.executions or {}).get(cron_key(at))
    return NearShape(at=at, execution=None if row is None else row.pk, state=None if row is None else row.state)


def sentence(schedule: Scheduler, known: Found, info: tzinfo) -> tuple[Answer, str, SchedulerExecution | None]:
    """The answer, the same as text, and the execution that it tells of. All times are in the zone `info`."""
    said = answer(known.facts)
    row = {Answer.RECORDED: known.row, Answer.LEFT_OUT: known.counting}.get(said)
    text = _of_row(row, said, known.facts.now, info) if row is not None else _computed(schedule, known, said, info)
    if known.asked is not None:
        start = _("At %(asked)s starts the run of %(due)s, because the schedule is spread.")
        times = {"asked": format_minute(known.asked, info), "due": format_minute(known.facts.at, info)}
        text = f"{start % times} {text}"
    elif row is not None and said is Answer.RECORDED and (moved := moved_words(row, info)):
        text = f"{text} {moved}"
    if row is not None and row.trigger == Trigger.BACKFILL.value:
        text = _("A backfill has made up for it. %(said)s") % {"said": text}
    return said, visible_text(text, REASON_MAX_CHARS + 200), row


def _of_row(row: SchedulerExecution, said: Answer, now: datetime, info: tzinfo) -> str:
    reason = for_reader(row.reason, REASON_MAX_CHARS) or _("No reason was recorded.")
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
    return waiting_words(row, now, info)


def _computed(schedule: Scheduler, found: Found, said: Answer, info: tzinfo) -> str:
    """The answer if no execution is on record."""
    facts, pause = found.facts, _pause(found, schedule, info)
    match said:
        case Answer.WILL_RUN | Answer.NOT_DUE | Answer.OUTSIDE:
            return _by_times(schedule, found, said, info)
        case Answer.WILL_BE_LEFT_OUT:
            return _("It is due then, but will not run unless it is resumed. %(pause)s") % {"pause": pause}
        case Answer.PAUSED:
            return _("It did not run. %(pause)s") % {"pause": pause}
        case Answer.WILL_BE_EXCLUDED | Answer.EXCLUDED | Answer.HELD | Answer.SPREAD:
            return _by_rules(found, said, info)
        case Answer.WAITS:
            text = _("It fell due, and no producer has claimed it yet.")
            return " ".join([text, *overdue(schedule, facts.now)[1:]])
        case Answer.NOT_CREATED | Answer.OTHER_TIMES:
            return _not_planned(found, said, info)
    return _("It was due, but nothing is on record. Old history is deleted by the cleanup.")


def _by_times(schedule: Scheduler, found: Found, said: Answer, info: tzinfo) -> str:
    """The answer if it follows from the present times alone."""
    facts, error = found.facts, found.problem or in_language(schedule.plan_error)
    if error:
        return _("It is not planned: %(error)s") % {"error": error}
    if said is Answer.WILL_RUN:
        text = _("It is due then, %(when)s.") % {"when": relative_time(facts.at, facts.now)}
        if facts.fate is not None and facts.starts_at != facts.at:
            text = f"{text} {_start(found, info)}"
        return f"{text} {awaited}" if (awaited := _awaited(schedule)) else text
    if said is Answer.OUTSIDE:
        return _outside(schedule, facts.at, facts.now, info)
    return _("It was not due then.") if facts.at <= facts.now else _("It is not due then.")


def _outside(schedule: Scheduler, at: datetime, now: datetime, info: tzinfo) -> str:
    """Which bound of the schedule leaves the instant out."""
    was = _("It was not due then:") if at <= now else _("It is not due then:")
    since, until = schedule.active_from, schedule.active_until
    if since is not None and at < since:
        text = _("the schedule is active from %(time)s on.") % {"time": format_minute(since, info)}
    else:
        text = (
            _("the schedule is active until %(time)s.")
            if until and until > now
            else _("the schedule was active until %(time)s.")
        )
        text = text % {"time": format_minute(until, info) if until is not None else ""}
    return f"{was} {text}"


def _awaited(schedule: Scheduler) -> str:
    """After which other schedule the run will start; empty if it waits for none."""
    other = Scheduler.objects.filter(pk=schedule.after_id).first() if schedule.after_id is not None else None
    if other is None:
        return ""
    return _("It starts after %(other)s.") % {"other": predecessor_words(other, schedule.group_id)}


def _by_rules(found: Found, said: Answer, info: tzinfo) -> str:
    """The answer if a calendar or the spread decides."""
    why = {"why": for_reader(found.why, 300).rstrip(".")}
    match said:
        case Answer.WILL_BE_EXCLUDED:
            return _("It is due then, but a calendar excludes it: %(why)s.") % why
        case Answer.EXCLUDED:
            return _("It does not run: a calendar excludes it: %(why)s. The next run puts it on record.") % why
        case Answer.HELD:
            return _start(found, info)
    return _("It fell due, and its schedule is spread. %(start)s") % {"start": _start(found, info)}


def _start(found: Found, info: tzinfo) -> str:
    """When the occurrence starts."""
    start, why = found.facts.starts_at, for_reader(found.why, 300).rstrip(".")
    at = f"{start.astimezone(info):%Y-%m-%d %H:%M:%S} {start.astimezone(info).tzname()}" if start is not None else ""
    if found.facts.fate is not Fate.HELD:
        return _("It starts at %(at)s.") % {"at": at}
    expected = found.expected
    if expected is not None and expected.gives_way_at is not None:
        held = _("A calendar holds it: %(why)s. It gives way to the run that is due when the hold ends, at %(at)s.")
        return held % {"why": why, "at": format_minute(expected.gives_way_at, info)}
    if start is None:
        return _("A calendar holds it: %(why)s. No end of it is known, so it does not run.") % {"why": why}
    if expected is not None and expected.count == 1:
        return _("A calendar holds it: %(why)s. It starts at %(at)s.") % {"why": why, "at": at}
    held = _("A calendar holds it: %(why)s. Only the latest run that is held starts, at %(at)s.")
    return held % {"why": why, "at": at}


def _not_planned(found: Found, said: Answer, info: tzinfo) -> str:
    facts = found.facts
    if said is Answer.NOT_CREATED:
        created = _to_tell_apart(facts.created_at, facts.at, info)
        return _("It did not run: the schedule was created later, at %(time)s.") % {"time": created}
    since = _to_tell_apart(facts.planned_at, facts.at, info) if facts.planned_at is not None else ""
    text = _("It was not planned then: it has its present times only since %(time)s. No earlier run is on record.")
    return text % {"time": since}


def _to_tell_apart(instant: datetime, other: datetime, info: tzinfo) -> str:
    """The instant to the minute; to the second if the other one lies in the same minute."""
    same = instant.replace(second=0, microsecond=0) == other.replace(second=0, microsecond=0)
    return format_instant(instant, info) if same else format_minute(instant, info)


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
        text = f"{text.rstrip('.')}: {for_reader(schedule.paused_because, 300).rstrip('.')}."
    return text
