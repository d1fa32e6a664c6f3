"""Makes the sentences that say why an occurrence did not run. The rows of skipped executions store these sentences."""

from __future__ import annotations

from datetime import datetime, timedelta, tzinfo
from enum import StrEnum

SWITCHED_OFF = "The schedule was paused after the run fell due and before a producer claimed it."

NO_PRODUCER = "no producer was running"
"""The argument `why` of `missed` if the latest occurrence runs and the earlier occurrences do not run."""


RAN_BEFORE_RESTORE = "it ran before the database was restored, as far as is known"
"""The argument `why` of `missed` for occurrences that a restored database does not know any more."""

CONFIRMED = "the database was confirmed, and what had fallen due by then was left out"
"""The argument `why` of `missed` for occurrences that an operator left out when a copy was confirmed."""


PAUSED = "Paused"
"""The first word of `paused`. Occurrences that a pause has left out were meant to be left out."""

LEFT_OUT = "Left out"
"""The first words of `left_out`. The policy of the schedule wants such an occurrence to be left out."""

BY_HANDLER = f"{LEFT_OUT} by its handler"
"""The first words of `not_needed`."""

MISSED = "Missed"
"""The first word of `missed` and `missed_date`."""

TOO_LATE = "no producer ran within the catch-up window"
"""The first words of `too_late`."""

ON_PURPOSE = (PAUSED, LEFT_OUT)
"""The beginnings of the sentences about occurrences that were meant to be left out. `models.health` has the same as a
condition of the database."""

PAUSED_SERVICE = f"{LEFT_OUT}, because the service is paused. Resume it; then its next occurrence starts it."


class SkipReason(StrEnum):
    """The kinds of sentences of this module. Tallies count by them, because a sentence names instants and people."""

    PAUSED = "paused"
    NO_PRODUCER = "no_producer"
    TOO_LATE = "too_late"
    OVERLAP = "overlap"
    NOT_NEEDED = "not_needed"
    RESTORED = "restored"
    CONFIRMED = "confirmed"
    OTHER = "other"


def kind_of(reason: str) -> SkipReason:
    """The kind of a sentence that this module has made; OTHER for any other text."""
    if reason.startswith((PAUSED, SWITCHED_OFF, PAUSED_SERVICE)):
        return SkipReason.PAUSED
    if reason.startswith(BY_HANDLER):
        return SkipReason.NOT_NEEDED
    if reason.startswith(LEFT_OUT):
        return SkipReason.OVERLAP
    if not reason.startswith(MISSED):
        return SkipReason.OTHER
    ends = {
        NO_PRODUCER: SkipReason.NO_PRODUCER, RAN_BEFORE_RESTORE: SkipReason.RESTORED, CONFIRMED: SkipReason.CONFIRMED,
    }  # fmt: skip
    found = next((kind for why, kind in ends.items() if reason.endswith(f": {why}.")), SkipReason.OTHER)
    return SkipReason.TOO_LATE if found is SkipReason.OTHER and f": {TOO_LATE}" in reason else found


def is_on_purpose(reason: str) -> bool:
    """Whether a skipped execution with this reason was meant to be left out."""
    return reason.startswith(ON_PURPOSE)


def not_needed(said: str) -> str:
    """The sentence for a run that its handler does not need, with what the handler says about it."""
    return f"{BY_HANDLER}: {said.strip() or 'there is nothing to do.'}"


def left_out(execution: int, service: bool) -> str:
    """The sentence for occurrences that fell due while an earlier execution was not over.

    Args:
        execution: the id of the earlier execution.
        service: whether the schedule is a service.
    """
    if service:
        return f"{LEFT_OUT}, because the service was running already, as execution {execution}."
    return f"{LEFT_OUT}, because execution {execution} was not over."


def too_late(catch_up: timedelta) -> str:
    """The argument `why` of `missed` if even the latest occurrence is too old to run."""
    return f"{TOO_LATE} of {_duration(catch_up)}"


def missed(first: datetime, last: datetime, count: int, why: str, info: tzinfo) -> str:
    """The sentence for `count` missed occurrences of a cron schedule, from `first` to `last`.

    The sentence gives the times in the zone `info` of the schedule.
    """
    start, end = first.astimezone(info), last.astimezone(info)
    if count == 1:
        return f"{MISSED} 1 occurrence at {_reading(start)} {start.tzname()}: {why}."
    return f"{MISSED} {count} occurrences from {_reading(start)} to {_reading(end)} {end.tzname()}: {why}."


def missed_date(date_time: datetime, catch_up: timedelta) -> str:
    """The sentence for the missed occurrence of a one-time schedule. `date_time` is in UTC."""
    return f"{MISSED} the run at {_reading(date_time)} UTC: {too_late(catch_up)}."


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
    who = f"{PAUSED} by {by}" if by else PAUSED
    because = f": {why.rstrip(' .;:')}" if why.rstrip(" .;:") else ""
    to = f"{end:%H:%M}" if start.date() == end.date() else f"{end:%Y-%m-%d %H:%M}"
    left = "1 occurrence" if count == 1 else f"{count} occurrences"
    return f"{who} from {start:%Y-%m-%d %H:%M} to {to} {end.tzname()}{because}. {left} did not run."


def _reading(instant: datetime) -> str:
    return f"{instant:%Y-%m-%d %H:%M:%S}" if instant.second else f"{instant:%Y-%m-%d %H:%M}"


def _duration(length: timedelta) -> str:
    """A length of time as text, in the largest unit that gives a whole number: "1 day", "90 minutes"."""
    seconds = int(length.total_seconds())
    units = (("day", 86400), ("hour", 3600), ("minute", 60), ("second", 1))
    whole = ((unit, seconds // size) for unit, size in units if seconds >= size and not seconds % size)
    unit, number = next(whole, ("second", seconds))
    return f"{number} {unit}" if number == 1 else f"{number} {unit}s"
