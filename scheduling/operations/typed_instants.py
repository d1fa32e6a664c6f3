"""Reads an instant that a person types, on the clock of a schedule."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

from scheduling.core.messages import FIRST_YEAR, LAST_YEAR
from scheduling.core.zones import instants, resolve

LONGEST_TYPED = 40
_TYPED = re.compile(r"(?:(\d{4})-(\d{1,2})-(\d{1,2})[ T]+)?(\d{1,2}):(\d{2})(?::(\d{2}))?", re.ASCII)
_WITH_OFFSET = re.compile(r"(\d{4}-\d\d-\d\d)[ T](\d\d:\d\d(?::\d\d(?:\.\d{1,6})?)?) ?(Z|[+-]\d\d:?\d\d)", re.ASCII)


@dataclass(frozen=True)
class Typed:
    """The instants that a text stands for, whole minutes or whole seconds.

    Args:
        instants: one, or two if the clocks show the local time twice.
        skipped: whether the clocks skip the local time. The instant is then the first one after the gap.
    """

    instants: tuple[datetime, ...]
    skipped: bool = False


def typed_instants(typed: str, info: ZoneInfo, now: datetime, seconds: bool = False) -> Typed | None:
    """The instants of a text such as `2026-03-29 02:30`, `02:30` or `2026-03-29T02:30+02:00`; None if it is no time.

    Args:
        info: the zone of a text without an offset.
        now: a time without a date is the latest such time that has passed.
        seconds: whether the seconds of the text count. If not, the instants are whole minutes.
    """
    text = typed.strip()[:LONGEST_TYPED]
    if match := _WITH_OFFSET.fullmatch(text):
        return _with_offset(match[1], match[2], match[3], seconds)
    wall = parsed(text, now.astimezone(info).replace(tzinfo=None), seconds)
    if wall is None:
        return None
    first, second = instants(wall, info)
    if first > second:
        return Typed((resolve(wall, info),), skipped=True)
    return Typed(tuple(sorted({first, second})))


def _with_offset(day: str, reading: str, offset: str, seconds: bool) -> Typed | None:
    try:
        found = datetime.fromisoformat(f"{day}T{reading}{offset}").astimezone(UTC)
    except (ValueError, OverflowError):
        return None
    found = found.replace(microsecond=0, second=found.second if seconds else 0)
    return Typed((found,)) if FIRST_YEAR < found.year < LAST_YEAR else None


def parsed(typed: str, now: datetime, seconds: bool = False) -> datetime | None:
    """The local time that was typed, without a zone; None if the text is no time.

    Args:
        now: the present local time. A time without a date is the latest such time that has passed.
        seconds: whether the seconds of the text count. If not, the result is a whole minute.
    """
    match = _TYPED.fullmatch(typed.strip())
    if match is None:
        return None
    year, month, day, hour, minute, second = match.groups()
    try:
        reading = time(int(hour), int(minute), int(second or 0) if seconds else 0)
        if year is not None:
            wall = datetime.combine(date(int(year), int(month), int(day)), reading)
            return wall if FIRST_YEAR < wall.year < LAST_YEAR else None
    except ValueError:
        return None
    wall = datetime.combine(now.date(), reading)
    return wall if wall <= now else wall - timedelta(days=1)
