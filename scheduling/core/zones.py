"""Finds IANA time zones by name, and converts wall-clock times to instants.

When the clocks go back (a fold), some wall-clock times belong to two instants. When the clocks go forward (a gap), some
wall-clock times belong to no instant. Python's zoneinfo knows the clock changes.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

from scheduling.core.words import gettext as _

# Files in the zone folder that are not zones: the machine's own setting, a template, and a placeholder for "not set".
_NO_ZONES = frozenset({"localtime", "posixrules", "Factory"})
_LONGEST_NAME = 64
_SECOND = timedelta(seconds=1)
_DAY = timedelta(days=1)
_TICK = timedelta(microseconds=1)


class ZoneError(ValueError):
    """A zone name is refused, or the data of the zone cannot be read. The message is a sentence for users.

    ``nearest`` is the zone that the user probably meant; empty if none is similar.
    """

    def __init__(self, said: str, nearest: str = "") -> None:
        super().__init__(said)
        self.nearest = nearest


@lru_cache(maxsize=1)
def zone_names() -> frozenset[str]:
    """The names of all zones that ``zone`` accepts."""
    return frozenset(available_timezones() - _NO_ZONES)


@lru_cache(maxsize=1024)
def zone(name: str) -> ZoneInfo:
    """The IANA zone with this name, such as "Europe/Madrid". Raises ZoneError if there is no such zone.

    Only names in ``zone_names`` are looked up. An absolute path, "../x" or "localtime" would make zoneinfo read other
    files.
    """
    if name in zone_names():
        try:
            return ZoneInfo(name)
        except (ZoneInfoNotFoundError, ValueError, OSError) as error:
            said = _("Zone: the data of '{name}' cannot be read; reinstall the tzdata package.")
            raise ZoneError(said.format(name=name)) from error
    if len(name) > _LONGEST_NAME:
        said = _("Zone: a name of {length} characters is no IANA time zone; write one like 'Europe/Madrid'.")
        raise ZoneError(said.format(length=len(name)))
    nearest = _nearest(name)
    said = _("Zone: {name} is not an IANA time zone; write one like 'Europe/Madrid', or 'UTC'.")
    if nearest:
        said = _("Zone: {name} is not an IANA time zone; did you mean '{nearest}'?")
    raise ZoneError(said.format(name=repr(name), nearest=nearest), nearest or "")


def _nearest(name: str) -> str | None:
    # First the whole name is compared, without regard to case, and then the city alone ("new york"). After that, names
    # with a similar spelling are tried. Among equal matches, the alphabetically first zone is taken, so that the answer
    # is always the same.
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
    """The instant in UTC. Raises ValueError for a naive datetime, because it could mean many instants."""
    if instant.utcoffset() is None:
        raise ValueError(f"An instant needs a time zone; {instant!r} has none.")
    return instant.astimezone(UTC)


def instants(wall: datetime, info: ZoneInfo) -> tuple[datetime, datetime]:
    """Two instants (UTC) of a naive wall-clock time. Near a clock change, the first instant is computed with the offset
    before the change, and the second instant with the offset after the change.

    If the two instants are equal, the time is neither repeated nor skipped. If the first instant is earlier, the time
    is repeated: it occurs at both instants. If the first instant is later, the time is skipped, and the clock change
    is in (second, first].
    """
    # PEP 495 defines `fold` in this way, and every tzinfo of the standard library follows it.
    aware = wall.replace(tzinfo=info, fold=0)
    return aware.astimezone(UTC), aware.replace(fold=1).astimezone(UTC)


def resolve(wall: datetime, info: ZoneInfo) -> datetime:
    """The instant (UTC) at which a fixed job for this naive wall-clock time runs.

    For a repeated time, the result is the first of its two instants. For a skipped time, the result is the first
    instant after the gap.
    """
    first, second = instants(wall, info)
    return first if first <= second else _change(info, second, first)


def reached(instant: datetime, info: ZoneInfo) -> datetime:
    """The latest naive wall-clock time for which a fixed job has run by this instant: the inverse of ``resolve``.

    It is what a clock shows. But while the clock repeats an hour, it is the last microsecond of this hour, because all
    jobs of the hour have run already.
    """
    local = instant.astimezone(info)
    wall = local.replace(tzinfo=None, fold=0)
    if not local.fold:
        return wall
    change = _change(info, instants(wall, info)[0], instant)
    return (change - _TICK).astimezone(info).replace(tzinfo=None, fold=0)


def resolve_wall(local: datetime, tz: str) -> datetime:
    """The instant, in UTC, of a naive wall-clock time in the zone named ``tz``, by the rule of fixed jobs.

    For a repeated time, the result is the first of its two instants. For a skipped time, the result is the first
    instant after the gap. Seconds are kept. Raises ZoneError for an unknown zone. Raises ValueError if ``local`` is
    aware, or if the result is outside the years 1 to 9999.
    """
    if local.tzinfo is not None:
        raise ValueError(f"A wall-clock time must have no time zone; {local!r} has one.")
    try:
        return resolve(local, zone(tz))
    except OverflowError as error:
        said = _("{time} in {zone} lies outside the years 1-9999 in UTC.")
        raise ValueError(said.format(time=local.isoformat(" "), zone=tz)) from error


def resolve_again(local: datetime, tz: str, stored: datetime | None) -> datetime:
    """The instant, in UTC, of a wall-clock time that stands where the instant ``stored`` was shown, to the second.

    If the clock of the zone shows this time at ``stored``, the result is ``stored``: the time was not touched, and it
    may be the second one of a repeated hour. Otherwise it is that of ``resolve_wall``, with its errors.
    """
    found = resolve_wall(local, tz)
    if stored is None:
        return found
    first, second = instants(local, zone(tz))
    shown = first <= second and {stored, stored.replace(microsecond=0)} & {first, second}
    return stored if shown else found


def clock_changes(info: ZoneInfo, after: datetime, until: datetime) -> Iterator[tuple[datetime, timedelta]]:
    """The changes of the zone's offset in (after, until], as pairs (instant in UTC, size without sign), ascending.

    zoneinfo does not publish its table of changes. Therefore this function compares the offsets of successive days, and
    finds the instant of a change by bisection. Two changes within a day could be missed, but no zone has changed twice
    within six days (tzdata 2026f, 1800-2100).
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
    """The first second in (before, after] that has the offset of ``after``. At ``before`` the offset must differ."""
    low, high = before.replace(microsecond=0), after.replace(microsecond=0)
    old = _offset(low, info)
    while high - low > _SECOND:
        middle = low + (high - low) // _SECOND // 2 * _SECOND
        if _offset(middle, info) == old:
            low = middle
        else:
            high = middle
    return high
