"""Lengths of time in words, for pages and for the doctor."""

from __future__ import annotations

from django.utils.translation import gettext as _

from scheduling.core.words import decimal


def format_duration(seconds: float) -> str:
    """A duration in at most two units: `4 ms`, `1.5 s`, `12 s`, `2 min 5 s`, `3 h 20 min`, `4 d 6 h`."""
    seconds = max(seconds, 0.0)
    if 0 < seconds < 0.9995:
        return _("%(number)d ms") % {"number": max(round(seconds * 1000), 1)}
    if seconds < 10:
        return _("%(seconds)s s") % {"seconds": decimal(f"{seconds:.2f}".rstrip("0").rstrip("."))}
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


def format_span(seconds: float) -> str:
    """How long ago something was, or how long it takes until then: `27 s`, `1 min 30 s`, `12 min`, `3 d 13 h`, `12 d`.

    It is rounded down to whole minutes from two minutes on, and to whole days from ten days on.
    """
    whole = round(max(seconds, 0.0))
    for edge, unit in ((10 * 86_400, 86_400), (120, 60)):
        if whole >= edge:
            return format_duration(whole // unit * unit)
    return format_duration(whole)
