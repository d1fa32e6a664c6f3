"""Makes the sentences that say why an occurrence did not run. The rows of skipped executions store these sentences."""

from __future__ import annotations

from datetime import datetime, timedelta, tzinfo
from enum import StrEnum

from scheduling.core import skip_sentences as say
from scheduling.core.after_sentences import NOT_STARTED_IN_TIME
from scheduling.core.skip_sentences import duration
from scheduling.core.text import clean

WHY_MAX_CHARS = 300
"""What a calendar says is cut to this length."""

SWITCHED_OFF = say.SWITCHED_OFF.format()

NO_PRODUCER = say.NO_PRODUCER.format()
"""The argument `why` of `missed` if the latest occurrence runs and the earlier occurrences do not run."""


RAN_BEFORE_RESTORE = say.RAN_BEFORE_RESTORE.format()
"""The argument `why` of `missed` for occurrences that a restored database does not know any more."""

CONFIRMED = say.CONFIRMED.format()
"""The argument `why` of `missed` for occurrences that an operator left out when a copy was confirmed."""


NOT_CAUGHT_UP = say.NOT_CAUGHT_UP.format()
"""The argument `why` of `missed` for occurrences of a schedule that never runs what it has missed."""

OVER_CAP = say.OVER_CAP.format()
"""The argument `why` of `missed` for occurrences beyond the cap of a schedule that catches up all."""

PERHAPS_EXCLUDED = say.PERHAPS_EXCLUDED.format()
"""The argument `why` of `missed` for so many occurrences that they are not looked at one by one."""

EDITED = say.EDITED.format()
"""The argument `why` of `missed` for occurrences that were due, and waited for their time to start."""

HELD_EDITED = say.HELD_EDITED.format()
"""The end of `held` for occurrences whose hold was not over when an edit ended it."""

PAUSED = "Paused"
"""The first word of `paused`. Occurrences that a pause has left out were meant to be left out."""

LEFT_OUT = "Left out"
"""The first words of `left_out`. The policy of the schedule wants such an occurrence to be left out."""

BY_HANDLER = f"{LEFT_OUT} by its handler"
"""The first words of `not_needed`."""

EXCLUDED = "Excluded"
"""The first word of `excluded`. The calendar of the schedule wants such an occurrence to be left out."""

HELD = "Held"
"""The first word of `held`. Of the occurrences that a calendar holds together, only the latest is to run."""

MISSED = "Missed"
"""The first word of `missed` and `missed_date`."""

EXPIRED = "Expired"
"""The first word of `expired`."""

TOO_LATE = "no producer ran within the catch-up window"
"""The first words of `too_late`."""

PREDECESSOR = "Not started in time"
"""The first words of `predecessor_late`."""

ON_PURPOSE = (PAUSED, LEFT_OUT, EXCLUDED, HELD)
"""The beginnings of the sentences about occurrences that were meant to be left out. `models.health` has the same as a
condition of the database."""

PAUSED_SERVICE = say.PAUSED_SERVICE.format()


class SkipReason(StrEnum):
    """The kinds of sentences of this module. Tallies count by them, because a sentence names instants and people."""

    PAUSED = "paused"
    NO_PRODUCER = "no_producer"
    TOO_LATE = "too_late"
    OVERLAP = "overlap"
    EXPIRED = "expired"
    NOT_NEEDED = "not_needed"
    NOT_CAUGHT_UP = "not_caught_up"
    OVER_CAP = "over_cap"
    EXCLUDED = "excluded"
    HELD = "held"
    RESTORED = "restored"
    CONFIRMED = "confirmed"
    PREDECESSOR = "predecessor"
    OTHER = "other"


_BEGINNINGS: tuple[tuple[str | tuple[str, ...], SkipReason], ...] = (
    ((PAUSED, SWITCHED_OFF, PAUSED_SERVICE), SkipReason.PAUSED),
    (BY_HANDLER, SkipReason.NOT_NEEDED),  # it begins as the next one does
    (LEFT_OUT, SkipReason.OVERLAP),
    (EXCLUDED, SkipReason.EXCLUDED),
    (HELD, SkipReason.HELD),
    (EXPIRED, SkipReason.EXPIRED),
    (PREDECESSOR, SkipReason.PREDECESSOR),
)


def kind_of(reason: str) -> SkipReason:
    """The kind of a sentence that this module has made; OTHER for any other text."""
    if (begun := next((kind for words, kind in _BEGINNINGS if reason.startswith(words)), None)) is not None:
        return begun
    if not reason.startswith(MISSED):
        return SkipReason.OTHER
    ends = {
        NO_PRODUCER: SkipReason.NO_PRODUCER, RAN_BEFORE_RESTORE: SkipReason.RESTORED, CONFIRMED: SkipReason.CONFIRMED,
        NOT_CAUGHT_UP: SkipReason.NOT_CAUGHT_UP, OVER_CAP: SkipReason.OVER_CAP,
        PERHAPS_EXCLUDED: SkipReason.NO_PRODUCER,
    }  # fmt: skip
    found = next((kind for why, kind in ends.items() if reason.endswith(f": {why}.")), SkipReason.OTHER)
    return SkipReason.TOO_LATE if found is SkipReason.OTHER and f": {TOO_LATE}" in reason else found


def is_on_purpose(reason: str) -> bool:
    """Whether a skipped execution with this reason was meant to be left out."""
    return reason.startswith(ON_PURPOSE)


def not_needed(said: str) -> str:
    """The sentence for a run that its handler does not need, with what the handler says about it."""
    return say.NOT_NEEDED.format(said=said.strip() or say.NOTHING_TO_DO.format())


def left_out(execution: int, service: bool) -> str:
    """The sentence for occurrences that fell due while an earlier execution was not over.

    Args:
        execution: the id of the earlier execution.
        service: whether the schedule is a service.
    """
    return (say.SERVICE_RUNS if service else say.RUN_NOT_OVER).format(execution=execution)


def newer(execution: int) -> str:
    """The sentence for an execution that waited for its turn when a newer one fell due."""
    return say.NEWER.format(execution=execution)


def expired(within: timedelta, waited: timedelta, where: str) -> str:
    """The sentence for an occurrence that had not started by its start deadline.

    Args:
        within: how long after its due instant it had to start.
        waited: how long it had waited when that was found.
        where: what it waited for, such as "in the queue main"; it may end with a sentence of its own.
    """
    lengths = {"within": duration(_whole(within)), "waited": duration(_whole(waited))}
    return say.EXPIRED.format(**lengths, where=where.rstrip(" ."))


def predecessor_late(latest: datetime, why: str, info: tzinfo) -> str:
    """The sentence for an occurrence whose predecessor had not succeeded at the latest time.

    Args:
        why: for what it waited, and what has become of that.
        info: the zone of the schedule, in which the sentence gives the time.
    """
    return NOT_STARTED_IN_TIME.format(until=_local(latest, info), why=why)


def too_late(catch_up: timedelta) -> str:
    """The argument `why` of `missed` if even the latest occurrence is too old to run."""
    return say.TOO_LATE.format(window=duration(catch_up))


def missed(first: datetime, last: datetime, count: int, why: str, info: tzinfo) -> str:
    """The sentence for `count` missed occurrences of a cron schedule, from `first` to `last`.

    The sentence gives the times in the zone `info` of the schedule.
    """
    return say.MISSED.format(span=_span(first, last, count, info), why=why)


def excluded(first: datetime, last: datetime, count: int, why: str, info: tzinfo) -> str:
    """The sentence for occurrences that a calendar has excluded. `why` is what the calendar says."""
    return say.EXCLUDED.format(span=_span(first, last, count, info), why=calendar_words(why))


def held(first: datetime, last: datetime, count: int, why: str, info: tzinfo, instead: str) -> str:
    """The sentence for occurrences that a calendar has held, and that do not run.

    Args:
        why: what the calendar says.
        instead: what became of them: `later_ran` or `HELD_EDITED`.
    """
    return say.HELD.format(span=_span(first, last, count, info), why=calendar_words(why), instead=instead)


def later_ran(instant: datetime, info: tzinfo) -> str:
    """The end of `held` if a later occurrence runs when the hold ends: the one at this nominal instant."""
    return say.LATER_RAN.format(at=_local(instant, info))


def missed_date(date_time: datetime, catch_up: timedelta) -> str:
    """The sentence for the missed occurrence of a one-time schedule. `date_time` is in UTC."""
    return say.MISSED.format(span=say.RUN_AT.format(at=f"{_reading(date_time)} UTC"), why=too_late(catch_up))


def paused(since: datetime, until: datetime, count: int, info: tzinfo, by: str = "", why: str = "") -> str:
    """The sentence for `count` occurrences that a pause left out, such as
    "Paused by anna from 2026-03-10 02:10 to 07:30 CET: storage full. 5 occurrences did not run."

    Args:
        since, until: the beginning and the end of the pause.
        info: the zone of the schedule, in which the sentence gives the times.
        by: the name of the user who paused the schedule; empty if it is unknown.
        why: the reason that this user gave; empty if there is none.
    """
    start, end = since.astimezone(info), until.astimezone(info)
    to = f"{end:%H:%M}" if start.date() == end.date() else f"{end:%Y-%m-%d %H:%M}"
    left = say.ONE_DID_NOT.format() if count == 1 else say.SEVERAL_DID_NOT.format(count=count)
    because = why.rstrip(" .;:")
    known = {(True, True): say.PAUSED_BY_BECAUSE, (True, False): say.PAUSED_BY, (False, True): say.PAUSED_BECAUSE}
    template = known.get((bool(by), bool(because)), say.PAUSED)
    return template.format(by=by, start=f"{start:%Y-%m-%d %H:%M}", end=f"{to} {end.tzname()}", why=because, left=left)


def calendar_words(why: str) -> str:
    """What a calendar says, as the sentences of this module have it."""
    return clean(why, WHY_MAX_CHARS).rstrip(" .;:") or say.SOME_CALENDAR.format()


def _span(first: datetime, last: datetime, count: int, info: tzinfo) -> str:
    if count == 1:
        return say.ONE_AT.format(at=_local(first, info))
    start = _reading(first.astimezone(info))
    return say.SEVERAL_FROM.format(count=count, first=start, last=_local(last, info))


def _local(instant: datetime, info: tzinfo) -> str:
    local = instant.astimezone(info)
    return f"{_reading(local)} {local.tzname()}"


def _reading(instant: datetime) -> str:
    return f"{instant:%Y-%m-%d %H:%M:%S}" if instant.second else f"{instant:%Y-%m-%d %H:%M}"


def _whole(length: timedelta) -> timedelta:
    """A length of time in whole seconds, at least 0."""
    return max(timedelta(0), timedelta(seconds=int(length.total_seconds())))
