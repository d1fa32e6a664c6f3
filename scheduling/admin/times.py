"""Instants and lengths of time, as operators read them: in UTC or a named zone, and relative to now."""

from __future__ import annotations

from datetime import UTC, datetime, tzinfo

from django.utils import timezone as clock
from django.utils.html import format_html
from django.utils.translation import gettext as _

EMPTY = "-"


def length(seconds: float) -> str:
    """A length of time in at most two units: `4 ms`, `1.5 s`, `12 s`, `2 min 5 s`, `3 h 20 min`, `4 d 6 h`."""
    seconds = max(seconds, 0.0)
    if 0 < seconds < 0.9995:
        return _("%(number)d ms") % {"number": max(round(seconds * 1000), 1)}
    if seconds < 10:
        return _("%(seconds)s s") % {"seconds": f"{seconds:.2f}".rstrip("0").rstrip(".")}
    whole = round(seconds)
    if whole < 60:
        return _("%(seconds)s s") % {"seconds": whole}
    if whole < 3600:
        return _two(_("%(big)d min"), _("%(big)d min %(small)d s"), *divmod(whole, 60))
    if whole < 2 * 86400:
        return _two(_("%(big)d h"), _("%(big)d h %(small)d min"), *divmod(whole // 60, 60))
    return _two(_("%(big)d d"), _("%(big)d d %(small)d h"), *divmod(whole // 3600, 24))


def _two(one: str, both: str, big: int, small: int) -> str:
    return (both if small else one) % {"big": big, "small": small}


def relative(instant: datetime, now: datetime | None = None) -> str:
    """`in 3 h 20 min`, `5 min ago`, `now`."""
    seconds = (instant - (now or clock.now())).total_seconds()
    if abs(seconds) < 1:
        return _("now")
    text = length(_coarse(round(abs(seconds))))
    return (_("in %(time)s") if seconds > 0 else _("%(time)s ago")) % {"time": text}


def _coarse(seconds: int) -> int:
    """What nobody needs to know from afar is left out: seconds after two minutes, hours after ten days."""
    for edge, unit in ((10 * 86_400, 86_400), (120, 60)):
        if seconds >= edge:
            return seconds // unit * unit
    return seconds


def spelled(instant: datetime, zone: tzinfo = UTC) -> str:
    """`2026-03-10 12:00:00 UTC`, with the zone's abbreviation as it is on that day."""
    local = instant.astimezone(zone)
    return f"{local:%Y-%m-%d %H:%M:%S} {local.tzname()}"


def stamp(instant: datetime | None, zone: tzinfo = UTC) -> str:
    """A `<time>` element that reads as `spelled`, with the ISO stamp in UTC as its title."""
    if instant is None:
        return EMPTY
    iso = instant.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    return format_html('<time class="sch-time" datetime="{}" title="{}">{}</time>', iso, iso, spelled(instant, zone))


def when(instant: datetime | None, now: datetime | None = None, zone: tzinfo = UTC) -> str:
    """`stamp`, with how long ago or from now below it."""
    if instant is None:
        return EMPTY
    return format_html('{}<span class="sch-quiet sch-below">{}</span>', stamp(instant, zone), relative(instant, now))


def ago(instant: datetime | None, now: datetime | None = None) -> str:
    """Only the relative time, with the stamp as its title: for a column beside an absolute one."""
    if instant is None:
        return EMPTY
    return format_html('<span title="{}">{}</span>', spelled(instant), relative(instant, now))


def took(started: datetime | None, finished: datetime | None) -> str:
    """The length between two instants, or an empty mark."""
    if started is None or finished is None:
        return EMPTY
    return length((finished - started).total_seconds())
