"""The clock: IANA time zones, and which instant a wall-clock reading names.

A clock change makes some readings name two instants (a fold: the clocks go back) and others none (a gap: they go
forward). zoneinfo knows the changes; this module says what they mean.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

# Files beside the zones: this machine's own setting, a template, and a placeholder that means "not set".
_NO_ZONES = frozenset({"localtime", "posixrules", "Factory"})
_LONGEST_NAME = 64
_SECOND = timedelta(seconds=1)
_DAY = timedelta(days=1)


class ZoneError(ValueError):
    """A zone name that is refused. The message is a sentence for the person who wrote it."""


@lru_cache(maxsize=1)
def zone_names() -> frozenset[str]:
    """Every zone that ``zone`` accepts."""
    return frozenset(available_timezones() - _NO_ZONES)


@lru_cache(maxsize=1024)
def zone(name: str) -> ZoneInfo:
    """The IANA zone of this name, such as "Europe/Madrid"; raise ZoneError with a sentence for anything else.

    Only listed names are looked up: an absolute path, "../x" or "localtime" would make zoneinfo read other files.
    """
    if name in zone_names():
        try:
            return ZoneInfo(name)
        except (ZoneInfoNotFoundError, ValueError, OSError) as error:
            raise ZoneError(f"Zone: the data of '{name}' cannot be read; reinstall the tzdata package.") from error
    if len(name) > _LONGEST_NAME:
        raise ZoneError(f"Zone: a name of {len(name)} characters is no IANA time zone; write one like 'Europe/Madrid'.")
    nearest = _nearest(name)
    fix = f"did you mean '{nearest}'?" if nearest else "write one like 'Europe/Madrid', or 'UTC'."
    raise ZoneError(f"Zone: {name!r} is not an IANA time zone; {fix}")


def _nearest(name: str) -> str | None:
    # By case, by city alone ("new york"), by spelling; the first in the alphabet, so that the answer is always one.
    wanted = name.strip().replace(" ", "_").casefold()
    names = {known.casefold(): known for known in sorted(zone_names(), reverse=True)}
    cities = {folded.rpartition("/")[2]: known for folded, known in names.items()}
    if wanted in names or wanted in cities:
        return names.get(wanted) or cities[wanted]
    close = difflib.get_close_matches(wanted, names, n=1, cutoff=0.8)
    if close:
        return names[close[0]]
    close = difflib.get_close_matches(wanted, cities, n=1, cutoff=0.8)
    return cities[close[0]] if close else None


def require_aware(instant: datetime) -> datetime:
    """The instant in UTC; raise ValueError if it is naive, for then nobody knows which instant it is."""
    if instant.utcoffset() is None:
        raise ValueError(f"An instant needs a time zone; {instant!r} has none.")
    return instant.astimezone(UTC)


def instants(wall: datetime, info: ZoneInfo) -> tuple[datetime, datetime]:
    """The two readings of a naive wall-clock time, in UTC: by the offset before a clock change, and by that after it.

    Equal for an ordinary time. First before second: the time is repeated, and these are its two passes. First after
    second: the time is skipped, and the change lies in (second, first].
    """
    # This is PEP 495's definition of fold, which holds for every tzinfo of the standard library.
    aware = wall.replace(tzinfo=info, fold=0)
    return aware.astimezone(UTC), aware.replace(fold=1).astimezone(UTC)


def resolve(wall: datetime, info: ZoneInfo) -> datetime:
    """The one instant of a naive wall-clock time: its first pass if repeated, the end of the gap if skipped."""
    first, second = instants(wall, info)
    return first if first <= second else _change(info, second, first)


def resolve_wall(local: datetime, tz: str) -> datetime:
    """The instant, in UTC, of a naive wall-clock time in the zone named ``tz``, by the rule of fixed jobs.

    A repeated time means its first pass; a skipped one means the first instant after the gap. Seconds are kept. Raises
    ZoneError for the name, and ValueError for an aware ``local`` or one too near to year 1 or 9999 to convert.
    """
    if local.tzinfo is not None:
        raise ValueError(f"A wall-clock time must have no time zone; {local!r} has one.")
    try:
        return resolve(local, zone(tz))
    except OverflowError as error:
        raise ValueError(f"{local.isoformat(' ')} in {tz} lies outside the years 1-9999 in UTC.") from error


def clock_changes(info: ZoneInfo, after: datetime, until: datetime) -> Iterator[tuple[datetime, timedelta]]:
    """Each change of the zone's offset in (after, until], as (instant in UTC, size without sign), ascending.

    The offset is looked at once a day and the change then found by bisection: zoneinfo does not publish its table, and
    in it no zone has ever changed twice within six days (tzdata 2026f, 1800-2100).
    """
    here = after
    while here < until:
        there = min(here + _DAY, until)
        size = abs(_offset(there, info) - _offset(here, info))
        if size:
            yield _change(info, here, there), size
        here = there


def _offset(instant: datetime, info: ZoneInfo) -> timedelta:
    return instant.astimezone(info).replace(tzinfo=None) - instant.replace(tzinfo=None)


def _change(info: ZoneInfo, before: datetime, after: datetime) -> datetime:
    """The first second in (before, after] with the offset of ``after``; the two must differ."""
    low, high = before.replace(microsecond=0), after.replace(microsecond=0)
    old = _offset(low, info)
    while high - low > _SECOND:
        middle = low + (high - low) // _SECOND // 2 * _SECOND
        if _offset(middle, info) == old:
            low = middle
        else:
            high = middle
    return high
