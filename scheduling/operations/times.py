"""Writes instants and durations as text for operators, without HTML.

An instant that belongs to a schedule or to one of its runs is written in the zone of the schedule. Every other instant
is written in the viewer's zone. The zone is always named.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import datetime, tzinfo

from django.utils import timezone as clock
from django.utils.translation import gettext as _

from scheduling.models.time_words import format_duration, format_span

EMPTY = "-"

_zone: ContextVar[tzinfo | None] = ContextVar("scheduling_zone", default=None)


@contextmanager
def times_in(zone: tzinfo) -> Iterator[None]:
    """Inside this context, instants are written in this zone, unless a function is given another zone.

    The page of a run uses it for all its parts. The zone is kept in a context variable, as the AdminSite is in
    `links.addresses_on`.
    """
    token = _zone.set(zone)
    try:
        yield
    finally:
        _zone.reset(token)


def viewers_zone() -> tzinfo:
    """The zone of the viewer: the one that a middleware has activated, else the site's."""
    return clock.get_current_timezone()


def relative_time(instant: datetime, now: datetime | None = None) -> str:
    """The time relative to now: `in 3 h 20 min`, `5 min ago`, `now`."""
    seconds = (instant - (now or clock.now())).total_seconds()
    if abs(seconds) < 1:
        return _("now")
    text = {"time": format_span(abs(seconds))}
    return (_("in %(time)s") if seconds > 0 else _("%(time)s ago")) % text


def due_words(instant: datetime, now: datetime) -> str:
    """When a run is due, relative to now: `in 3 h 20 min`, `now`, `was due 5 min ago`."""
    words = relative_time(instant, now)
    return _("was due %(when)s") % {"when": words} if (now - instant).total_seconds() >= 1 else words


def format_instant(instant: datetime, zone: tzinfo | None = None) -> str:
    """An instant as text, such as `2026-03-10 12:00:00 UTC`. The text ends with the zone's abbreviation."""
    local = instant.astimezone(zone or _zone.get() or viewers_zone())
    return f"{local:%Y-%m-%d %H:%M:%S} {local.tzname()}"


def format_minute(instant: datetime, zone: tzinfo | None = None) -> str:
    """As `format_instant`, but without the seconds: `2026-03-10 12:00 UTC`."""
    local = instant.astimezone(zone or _zone.get() or viewers_zone())
    return f"{local:%Y-%m-%d %H:%M} {local.tzname()}"


def format_due(instant: datetime, zone: tzinfo | None = None) -> str:
    """The instant of an occurrence: as `format_minute`, but with the seconds if they are not 0."""
    return format_instant(instant, zone) if instant.second else format_minute(instant, zone)


def duration_between(started: datetime | None, finished: datetime | None) -> str:
    """The duration between two instants; `EMPTY` if at least one instant is missing."""
    if started is None or finished is None:
        return EMPTY
    return format_duration((finished - started).total_seconds())
