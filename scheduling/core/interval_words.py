"""Describes an interval in a sentence, such as "At 08:00, every second Friday, counted from 2026-01-09"."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from scheduling.core.intervals import FIRST_DAY, DayInterval, RealInterval
from scheduling.core.words import gettext as _
from scheduling.core.words import ngettext, pgettext

_FEW = 120
"""A length of fewer minutes is told in minutes alone ("90 minutes"), and one of fewer seconds in seconds alone."""
_SECONDS = {"hour": 3_600, "minute": 60, "second": 1}


def describe_interval(interval: RealInterval | DayInterval) -> str:
    """One sentence without a full stop. Times are in the 24-hour format."""
    return _real(interval) if isinstance(interval, RealInterval) else _days(interval)


def joined(words: Sequence[str]) -> str:
    """The words as a list in a sentence: "a, b and c"."""
    if len(words) == 1:
        return words[0]
    return _("%(first)s and %(last)s") % {"first": ", ".join(words[:-1]), "last": words[-1]}


def weekday_names() -> tuple[str, ...]:
    """The names of the weekdays, from Monday on."""
    return _("Monday"), _("Tuesday"), _("Wednesday"), _("Thursday"), _("Friday"), _("Saturday"), _("Sunday")


def _real(interval: RealInterval) -> str:
    since = f"{interval.start.isoformat(' ', 'seconds' if interval.start.second else 'minutes')[:-6]} UTC"
    return _("%(every)s, counted from %(since)s") % {"every": _every(interval.step), "since": since}


def _every(step: timedelta) -> str:
    rest = step // timedelta(seconds=1)
    for unit, size in _SECONDS.items():
        if rest == size:
            return {"hour": _("Every hour"), "minute": _("Every minute"), "second": _("Every second")}[unit]
        if rest % size == 0 and (unit == "hour" or rest < _FEW * size):
            return _("Every %(length)s") % {"length": _length(unit, rest // size)}
    parts = []
    for unit, size in _SECONDS.items():
        number, rest = divmod(rest, size)
        if number:
            parts.append(_length(unit, number))
    return _("Every %(length)s") % {"length": joined(parts)}


def _length(unit: str, number: int) -> str:
    if unit == "hour":
        said = ngettext("%(count)s hour", "%(count)s hours", number)
    elif unit == "minute":
        said = ngettext("%(count)s minute", "%(count)s minutes", number)
    else:
        said = ngettext("%(count)s second", "%(count)s seconds", number)
    return said % {"count": number}


def _days(interval: DayInterval) -> str:
    at = _("At %(time)s") % {"time": f"{interval.hours[0]:02}:{interval.minutes[0]:02}"}
    parts = [at, _rounds(interval)]
    if interval.number > 1:
        parts.append(_("counted from %(day)s") % {"day": interval.start})
    elif interval.start != FIRST_DAY:
        parts.append(_("from %(day)s") % {"day": interval.start})
    return ", ".join(parts)


def _rounds(interval: DayInterval) -> str:
    number, names = interval.number, [weekday_names()[day] for day in interval.weekdays]
    if not names:
        return _every_day(number)
    nth = _nth_day().get(number)
    if len(names) == 1 and nth:
        return _("every %(nth)s %(weekday)s") % {"nth": nth, "weekday": names[0]}
    weekdays = joined(names)
    if number == 1:
        return _("every day") if len(names) == 7 else _("every %(weekdays)s") % {"weekdays": weekdays}
    if week := _nth_week().get(number):
        return _("every %(nth)s week on %(weekdays)s") % {"nth": week, "weekdays": weekdays}
    return _("every %(count)s weeks on %(weekdays)s") % {"count": number, "weekdays": weekdays}


def _every_day(number: int) -> str:
    if number == 1:
        return _("every day")
    if nth := _nth_day().get(number):
        return _("every %(nth)s day") % {"nth": nth}
    return _("every %(count)s days") % {"count": number}


def _nth_day() -> dict[int, str]:
    return {
        2: pgettext("day", "second"), 3: pgettext("day", "third"), 4: pgettext("day", "fourth"),
        5: pgettext("day", "fifth"), 6: pgettext("day", "sixth"), 7: pgettext("day", "seventh"),
        8: pgettext("day", "eighth"), 9: pgettext("day", "ninth"), 10: pgettext("day", "tenth"),
    }  # fmt: skip


def _nth_week() -> dict[int, str]:
    return {
        2: pgettext("week", "second"), 3: pgettext("week", "third"), 4: pgettext("week", "fourth"),
        5: pgettext("week", "fifth"), 6: pgettext("week", "sixth"), 7: pgettext("week", "seventh"),
        8: pgettext("week", "eighth"), 9: pgettext("week", "ninth"), 10: pgettext("week", "tenth"),
    }  # fmt: skip
