"""Until when alerts are muted."""

from __future__ import annotations

from datetime import datetime, time, timedelta
from enum import StrEnum
from zoneinfo import ZoneInfo

from scheduling.core.zones import resolve

LONGEST_MUTE = timedelta(days=90)
"""What is muted for longer is forgotten. Turn the rule off instead."""

FARTHEST_END = LONGEST_MUTE + timedelta(hours=1)
"""A mute that would last for longer was written by a clock that was ahead, or by plain SQL. It counts as none, because
it could silence an alert for ever. The hour is for clocks that differ a little."""

MORNING = time(8, 0)
"""Until this local time a mute "until tomorrow" lasts."""


class MuteSpan(StrEnum):
    """For how long a user wants it to be quiet."""

    HOUR = "1h"
    FOUR_HOURS = "4h"
    TOMORROW = "tomorrow"
    INSTANT = "at"
    """Until an instant that the user gives."""


_SPANS = {MuteSpan.HOUR: timedelta(hours=1), MuteSpan.FOUR_HOURS: timedelta(hours=4)}


class MuteProblem(ValueError):
    """The end of a mute cannot be used. `past` says why: it has passed, or it is too far away."""

    def __init__(self, past: bool) -> None:
        super().__init__("past" if past else "far")
        self.past = past


def muted_until(span: MuteSpan, now: datetime, info: ZoneInfo) -> datetime:
    """The end of a mute with this span.

    Args:
        span: any but INSTANT.
        info: the zone of the user. A local time that the clocks skip stands for the first one after the gap.
    """
    if span in _SPANS:
        return now + _SPANS[span]
    tomorrow = now.astimezone(info).date() + timedelta(days=1)
    return resolve(datetime.combine(tomorrow, MORNING), info)


def is_muted(until: datetime | None, now: datetime) -> bool:
    """Whether a mute with this end lasts. `models.mutes.not_muted` asks the database the opposite."""
    return until is not None and now < until <= now + FARTHEST_END


def check_end(until: datetime, now: datetime) -> None:
    """Refuse an end that has passed or is too far away.

    Raises:
        MuteProblem: it cannot be used.
    """
    if until <= now:
        raise MuteProblem(past=True)
    if until - now > LONGEST_MUTE:
        raise MuteProblem(past=False)
