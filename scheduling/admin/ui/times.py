"""Writes instants and durations as text for operators.

An instant that belongs to a schedule or to one of its runs is written in the zone of the schedule, and its title gives
the time of the viewer (the site's zone). Every other instant is written in the viewer's zone. The zone is always named.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime, tzinfo

from django.utils import timezone as clock
from django.utils.html import format_html
from django.utils.translation import gettext as _

from scheduling.models.time_words import format_duration as format_duration
from scheduling.models.time_words import format_span

EMPTY = "-"

_zone: ContextVar[tzinfo | None] = ContextVar("scheduling_admin_zone", default=None)


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


def _viewers() -> tzinfo:
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
    local = instant.astimezone(zone or _zone.get() or _viewers())
    return f"{local:%Y-%m-%d %H:%M:%S} {local.tzname()}"


def format_minute(instant: datetime, zone: tzinfo | None = None) -> str:
    """As `format_instant`, but without the seconds: `2026-03-10 12:00 UTC`."""
    local = instant.astimezone(zone or _zone.get() or _viewers())
    return f"{local:%Y-%m-%d %H:%M} {local.tzname()}"


def time_tag(instant: datetime | None, zone: tzinfo | None = None) -> str:
    """A `<time>` element with the text of `format_instant`.

    The element's title is the same instant on the viewer's clock or, if this is what the text says, in UTC.
    """
    if instant is None:
        return EMPTY
    iso = instant.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    said, others = format_instant(instant, zone), (format_instant(instant, other) for other in (_viewers(), UTC))
    title = next((other for other in others if other != said), iso)
    return format_html('<time class="sch-time" datetime="{}" title="{}">{}</time>', iso, title, said)


def time_with_relative(instant: datetime | None, now: datetime | None = None, zone: tzinfo | None = None) -> str:
    """The instant as `time_tag` writes it, and on the next line the time relative to now."""
    if instant is None:
        return EMPTY
    return format_html(
        '{}<span class="sch-quiet sch-below">{}</span>', time_tag(instant, zone), relative_time(instant, now)
    )


def relative_time_tag(instant: datetime | None, now: datetime | None = None, zone: tzinfo | None = None) -> str:
    """An element with only the relative time. The element's title is the instant."""
    if instant is None:
        return EMPTY
    return format_html('<span title="{}">{}</span>', format_instant(instant, zone), relative_time(instant, now))


def duration_between(started: datetime | None, finished: datetime | None) -> str:
    """The duration between two instants; `EMPTY` if at least one instant is missing."""
    if started is None or finished is None:
        return EMPTY
    return format_duration((finished - started).total_seconds())
