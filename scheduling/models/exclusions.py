"""Finds the calendars of schedules, and keeps them prepared by their versions.

A process asks for the calendars of all due schedules with one short query. It reads the entries of a calendar only if
it does not have this version yet.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from scheduling.conf import get_conf
from scheduling.core.calendars import Blocked, CalendarError, ExclusionCalendar, parse_calendar
from scheduling.core.skip_sentences import BY_CALENDAR
from scheduling.core.text import visible_text
from scheduling.core.words import gettext as _
from scheduling.core.words import language
from scheduling.models.calendar import Calendar, CalendarState

MOST_KEPT = 300_000
"""So many entries of calendars a process keeps prepared, at some hundred bytes each."""


@dataclass(frozen=True)
class NamedCalendar:
    """A calendar of schedules. Its call says of an instant whether it is excluded, with the calendar's name.

    Args:
        why_not: why it cannot be used; empty if it can. Then each question raises a CalendarError: no schedule runs as
            if it had no calendar.
    """

    pk: int
    name: str
    version: int
    exclusions: ExclusionCalendar | None = None
    why_not: str = ""

    @property
    def problem(self) -> str:
        """The sentence about a calendar that cannot be used; empty if it can."""
        said = _("The calendar “{name}” cannot be used: {fault}")
        return said.format(name=self.name, fault=self.why_not) if self.why_not else ""

    def __call__(self, instant: datetime) -> Blocked | None:
        """Why an instant (aware) is excluded; None if it is not.

        Raises:
            CalendarError: the calendar cannot be used.
        """
        found = self.usable().blocked(instant)
        return None if found is None else Blocked(found.until, BY_CALENDAR.format(reason=found.reason, name=self.name))

    def usable(self) -> ExclusionCalendar:
        """What it excludes.

        Raises:
            CalendarError: the calendar cannot be used. The message is a sentence with its name.
        """
        if self.exclusions is None:
            raise CalendarError(self.problem)
        return self.exclusions


class CalendarCache:
    """The prepared calendars of a process. It is safe to use from several threads.

    Args:
        most: how many entries they have together.
    """

    def __init__(self, most: int = MOST_KEPT) -> None:
        self._most, self._size = most, 0
        self._kept: OrderedDict[tuple[Any, ...], tuple[ExclusionCalendar | CalendarError, int]] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: tuple[Any, ...]) -> ExclusionCalendar | CalendarError | None:
        """What was put with this key; None if it is not known any more."""
        with self._lock:
            if key not in self._kept:
                return None
            self._kept.move_to_end(key)
            return self._kept[key][0]

    def put(self, key: tuple[Any, ...], found: ExclusionCalendar | CalendarError) -> None:
        """Keep a calendar, or why it cannot be used. Of each row, only one version is kept. The least recently used
        ones are dropped."""
        size = 1 + (len(found.reasons) if isinstance(found, ExclusionCalendar) else 0)
        with self._lock:
            for old in [old for old in self._kept if old[0] == key[0]]:
                self._size -= self._kept.pop(old)[1]
            self._kept[key] = (found, size)
            self._size += size
            while self._size > self._most and len(self._kept) > 1:
                self._size -= self._kept.popitem(last=False)[1][1]

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            self._kept.clear()
            self._size = 0


cache = CalendarCache()

_read: ContextVar[dict[int, NamedCalendar] | None] = ContextVar("scheduling_calendars", default=None)
"""What `read_once` has read."""


def exclusions_of(rows: Iterable[Any]) -> Mapping[int | None, NamedCalendar]:
    """The calendars of these schedules, by the `id` of the schedule. A schedule without a calendar is missing.

    Args:
        rows: schedules, or objects with their columns.
    """
    named = {row.id: row.calendar_id for row in rows if getattr(row, "calendar_id", None) is not None}
    if not named:
        return {}
    found = calendars({*named.values()})
    return {pk: found[key] for pk, key in named.items()}


@contextmanager
def read_once() -> Iterator[None]:
    """Inside this context, each calendar is read once. Who plans many schedules by it records the version that was
    read, so a change in between is found."""
    token = _read.set({})
    try:
        yield
    finally:
        _read.reset(token)


def calendars(ids: Collection[int]) -> dict[int, NamedCalendar]:
    """The calendars with these ids."""
    if (known := _read.get()) is None:
        return _calendars(ids)
    if unknown := [pk for pk in ids if pk not in known]:
        known |= _calendars(unknown)
    return {pk: known[pk] for pk in ids}


def _calendars(ids: Collection[int]) -> dict[int, NamedCalendar]:
    heads = Calendar.objects.filter(pk__in=ids).values_list("pk", "name", "version", "state", "timezone", "updated_at")
    known = {values[0]: values for values in heads}
    return {pk: _named(*known[pk]) if pk in known else _missing(pk) for pk in ids}


def calendar(pk: int) -> NamedCalendar:
    """The calendar with this id."""
    return calendars([pk])[pk]


def version_of(pk: int | None) -> int:
    """The present version of a calendar; 0 if there is none."""
    if pk is None:
        return 0
    if _read.get() is not None:
        return calendar(pk).version
    return Calendar.objects.filter(pk=pk).values_list("version", flat=True).first() or 0


def planned_exclusions(row: Any) -> NamedCalendar | None:
    """The calendar by which a schedule is planned, as it was then, if this is still known; None if it has none.

    Args:
        row: a schedule, with the columns `planned_calendar_id` and `planned_calendar_version`.
    """
    if row.planned_calendar_id is None:
        return None
    now = calendar(row.planned_calendar_id)
    if now.version == row.planned_calendar_version:
        return now
    former = _former_calendar(row.planned_calendar_id)
    return now if former is None or former.version != row.planned_calendar_version else former


def _former_calendar(pk: int) -> NamedCalendar | None:
    """The calendar as it was when all schedules were last planned by it; None if they never were."""
    names = ("name", "planned_version", "planned_timezone")
    head = Calendar.objects.filter(pk=pk, planned_entries__isnull=False).values_list(*names).first()
    if head is None:
        return None
    name, version, tz = head[0], head[1], str(head[2] or "") or get_conf().timezone
    key = (("former", pk), tz, version)
    if (found := _cached(key)) is None:
        found = _parsed(Calendar.objects.filter(pk=pk).values_list("planned_entries", flat=True).first(), tz)
        cache.put(key, found)
    return _with(pk, name, version, found)


def _named(pk: int, name: Any, version: int, state: int, tz: Any, updated_at: Any) -> NamedCalendar:
    tz = str(tz or "") or get_conf().timezone
    # Plain SQL has changed the row, and no sweep has given it its next version yet: the text itself is the key.
    entries = _entries(pk) if state == CalendarState.CHANGED else None
    # The time of the change: a change that was rolled back had the same version as the one that was made after it.
    key = (pk, tz, version, updated_at) if entries is None else (pk, tz, version, updated_at, entries)
    if (found := _cached(key)) is None:
        found = _parsed(_entries(pk) if entries is None else entries, tz)
        cache.put(key, found)
    return _with(pk, name, version, found)


def _with(pk: int, name: Any, version: int, found: ExclusionCalendar | CalendarError) -> NamedCalendar:
    shown = visible_text(name, 100)
    if isinstance(found, CalendarError):
        return NamedCalendar(pk, shown, version, why_not=str(found))
    return NamedCalendar(pk, shown, version, found)


def _missing(pk: int) -> NamedCalendar:
    return NamedCalendar(pk, str(pk), 0, why_not=_("it does not exist."))


def _entries(pk: int) -> Any:
    return Calendar.objects.filter(pk=pk).values_list("entries", flat=True).first()


def _parsed(entries: Any, tz: str) -> ExclusionCalendar | CalendarError:
    if not isinstance(entries, str):  # SQLite stores any type in any column
        return CalendarError(_("its entries are no text."))
    try:
        return parse_calendar(entries, tz)
    except CalendarError as error:
        return error


def _cached(key: tuple[Any, ...]) -> ExclusionCalendar | CalendarError | None:
    """What the cache has. The fault of a calendar that cannot be used is in the language in which it was read."""
    found = cache.get(key)
    return None if isinstance(found, CalendarError) and found.language != language() else found
