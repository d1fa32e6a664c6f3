"""Describes a timetable in plain words, for readers who do not know cron. Intervals: ``interval_words``.

The library cron-descriptor describes the time of day and the day of month. This module itself describes months and
weekdays, because the library takes their names from the locale of the process. The library also cannot describe a list
of ``d#k``, and does not know Debian's day rule.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from cron_descriptor import ExpressionDescriptor, Options

from scheduling.core.cron import Cron, parse
from scheduling.core.interval_words import describe_interval, joined, weekday_names
from scheduling.core.words import gettext as _
from scheduling.core.words import language, pgettext

_MOST_LISTED = 6
_LOCALES = {"de": "de_DE"}
"""The library's name of each language that this package has a catalogue of. In each other language, the words are
English."""


def describe(expression: str) -> str:
    """One sentence, such as "At 09:00, Monday through Friday". Raises CronError for an invalid expression.

    Times are in the 24-hour format. If the library fails on a valid expression, the function returns the expression
    itself, so that the page can still be shown.
    """
    return _describe(expression, language())


@lru_cache(maxsize=1024)
def _describe(expression: str, _language: str) -> str:
    cron = parse(expression)
    if not isinstance(cron, Cron):
        return describe_interval(cron)
    try:
        return ", ".join(filter(None, [_times(cron), _weekdays(cron), _months(cron)]))
    except Exception:
        # The library documents no narrower exception than "Exception".
        return cron.expression


def _times(cron: Cron) -> str:
    minute, hour, day = cron.expression.split()[:3]
    minute, hour = _field(minute, cron.minutes, 60), _field(hour, cron.hours, 24)
    if len(cron.minutes) == 1 and "," in hour:
        hour = ",".join(map(str, cron.hours))  # "At 09:00, 10:00 and 11:00", not "At 09:00 through 11:59"
    options = Options(locale_code=_LOCALES.get(language(), "en_US"), use_24hour_time_format=True)
    text = ExpressionDescriptor(f"{minute} {hour} {_days(cron, day)} * *", options).get_description()
    return _in_german(text) if language() == "de" else _in_english(text)


def _in_english(text: str) -> str:
    # The library does not say that the days are counted from 1 again in every month.
    text = re.sub(r"(every \d+ days)$", r"\1, starting on day 1 of the month", text)
    return re.sub(r"\bL of the month", "the last day of the month", text)


def _in_german(text: str) -> str:
    text = re.sub(r"(alle \d+ Tage)$", r"\1 ab dem 1. des Monats", text)
    # The library says "am 1, 15, und L Tag des Monats".
    return re.sub(r"am ([\dL][^:]*) Tag des Monats", lambda found: f"am {_german_days(found[1])} Tag des Monats", text)


def _german_days(text: str) -> str:
    return re.sub(r"\d+", r"\g<0>.", text).replace(", und", " und").replace("L", "letzten")


def _field(text: str, values: tuple[int, ...], size: int) -> str:
    """The field in the spelling that the library describes best: ``*``, a list, or the text without leading zeros.

    The library misreads some spellings. It describes 59/15 as a repetition and 5-5 as a range. It fails on a list that
    contains steps.
    """
    if len(values) == size:
        return "*"
    # For */40, "every 40 minutes" would be wrong: the minutes are counted from 0 again in every hour.
    uneven = text.startswith("*/") and size % int(text[2:]) and len(values) <= _MOST_LISTED
    if "," in text or uneven or len(values) == 1:
        return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in _stretches(values))
    return re.sub(r"\d+", lambda number: str(int(number[0])), text)


def _days(cron: Cron, text: str) -> str:
    if _every_day(cron):
        return "*"
    if cron.last_day:
        return ",".join(filter(None, [_field(",", cron.days, 31), "L"]))
    # A few days of the month are clearer as numbers than as "every n days".
    return _field("," if "/" in text and len(cron.days) <= _MOST_LISTED else text, cron.days, 31)


def _weekdays(cron: Cron) -> str:
    names = weekday_names()
    if cron.nth:
        found = [_("the %(nth)s %(weekday)s") % {"nth": _nth()[k], "weekday": names[(d - 1) % 7]} for d, k in cron.nth]
        return _("on %(days)s of the month") % {"days": joined(found)}
    if len(cron.weekdays) == 7 or (cron.either and len(cron.days) == 31):
        return ""
    # Here the week begins on Monday, so that 5-7 becomes "Friday through Sunday".
    places = [(d - 1) % 7 for d in cron.weekdays]
    words = _runs(places, names)
    if _every_day(cron):
        stretches = _stretches(tuple(sorted(places)))
        is_one = len(stretches) == 1 and stretches[0][0] != stretches[0][1]
        return words if is_one else _("only on %(days)s") % {"days": words}
    return _("or on %(days)s") % {"days": words} if cron.either else _("but only on %(days)s") % {"days": words}


def _nth() -> tuple[str, ...]:
    # fmt: off
    return (
        "", pgettext("weekday", "first"), pgettext("weekday", "second"), pgettext("weekday", "third"),
        pgettext("weekday", "fourth"), pgettext("weekday", "fifth"),
    )
    # fmt: on


def _month_names() -> tuple[str, ...]:
    # fmt: off
    return (
        _("January"), _("February"), _("March"), _("April"), _("May"), _("June"),
        _("July"), _("August"), _("September"), _("October"), _("November"), _("December"),
    )
    # fmt: on


def _every_day(cron: Cron) -> bool:
    """Whether the description can omit the day of month.

    It can if all days of the month are allowed, or if all weekdays are allowed and one match is enough.
    """
    return len(cron.days) == 31 or (cron.either and len(cron.weekdays) == 7)


def _months(cron: Cron) -> str:
    if len(cron.months) == 12:
        return ""
    return _("only in %(months)s") % {"months": _runs([m - 1 for m in cron.months], _month_names())}


def _runs(places: list[int], names: Sequence[str]) -> str:
    """The names at these indexes, as text. Three or more consecutive names become "first through last"."""
    stretches = _stretches(tuple(sorted(places)))
    return joined([
        names[a] if a == b else _("%(first)s through %(last)s") % {"first": names[a], "last": names[b]}
        for a, b in stretches
    ])  # fmt: skip


def _stretches(values: tuple[int, ...]) -> list[tuple[int, int]]:
    """Pairs (first, last), ascending. Three or more consecutive values make one pair. Any other value v makes the
    pair (v, v).
    """
    found: list[tuple[int, int]] = []
    for value in values:
        if found and found[-1][1] == value - 1:
            found[-1] = (found[-1][0], value)
        else:
            found.append((value, value))
    return [part for a, b in found for part in ([(a, b)] if b - a > 1 else [(v, v) for v in range(a, b + 1)])]
