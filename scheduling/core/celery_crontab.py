"""Crontabs as Celery reads them: which values each of the five fields means.

Celery's words differ from those of cron in a few points. A range may run backwards (``fri-mon``, ``22-2``). It then
goes on at the beginning of the field, also with a step. ``a/n`` without a range is refused, and so is weekday 7. A step
may be longer than the field. Names may stand in each field. Both day fields must match.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import date

from scheduling.core.cron_error import part_error
from scheduling.core.words import gettext as _

MOST_DAYS = {month: 29 if month == 2 else 30 if month in (4, 6, 9, 11) else 31 for month in range(1, 13)}
"""How many days each month has at most."""

_MONTHS = ("january", "february", "march", "april", "may", "june", "july", "august", "september", "october",
           "november", "december")  # fmt: skip
_WEEKDAYS = ("sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday")
_NAMES = {name: number for number, name in enumerate(_WEEKDAYS)} | {
    name: number for number, name in enumerate(_MONTHS, 1)
}
_NAMES |= {name[:3]: number for name, number in _NAMES.items()}
_PART = re.compile(r"(?:(\*)|([0-9]{1,4}|[a-z]+)(?:-([0-9]{1,4}|[a-z]+))?)(?:/([0-9]{1,9}))?", re.IGNORECASE)


class CeleryCrontabError(ValueError):
    """A field is none that Celery can read, or one whose meaning is not sure. The message is a sentence."""


@dataclass(frozen=True)
class CeleryCrontab:
    """The values of the five fields. A minute matches if all five match.

    Args:
        weekdays: 0 is Sunday.
        texts: minute, hour, day of month, month and weekday as they were written.
    """

    minutes: frozenset[int]
    hours: frozenset[int]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    texts: tuple[str, ...] = field(compare=False)

    def matches(self, day: date) -> bool:
        """Whether it runs on this day."""
        return day.month in self.months and day.day in self.days and day.isoweekday() % 7 in self.weekdays


def parse_celery(minute: str, hour: str, day: str, month: str, weekday: str) -> CeleryCrontab:
    """Read the five columns of a crontab.

    Raises:
        CeleryCrontabError: Celery cannot read it either, or it never runs.
    """
    found = CeleryCrontab(
        _values("minute", minute, 0, 59),
        _values("hour", hour, 0, 23),
        _values("day of month", day, 1, 31),
        _values("month", month, 1, 12),
        _values("weekday", weekday, 0, 6),
        (minute, hour, day, month, weekday),
    )
    if not any(number <= MOST_DAYS[one] for one in found.months for number in found.days):
        raise CeleryCrontabError(_("Day of month: none of these months has such a day, so it never runs."))
    return found


def _values(name: str, text: str, low: int, high: int) -> frozenset[int]:
    found: set[int] = set()
    for part in text.split(","):
        try:
            found |= _part(part, low, high)
        except ValueError as error:
            raise CeleryCrontabError(str(part_error(name, str(error)))) from None
    return frozenset(found)


def _part(part: str, low: int, high: int) -> set[int]:
    # Celery hands a number alone to int(), which ignores spaces. No other form may have spaces.
    match = _PART.fullmatch(part.strip() if part.strip().isdecimal() else part)
    shown = f"'{part[:40]}'"
    if match is None:
        raise ValueError(_("{text} cannot be read.").format(text=shown) if part else _("an item of the list is empty."))
    star, first, last, step = match.groups()
    if step is not None and int(step) == 0:
        raise ValueError(_("the step of {text} is 0.").format(text=shown))
    if step is not None and not star and last is None:
        raise ValueError(_("{text} cannot be read: a step needs a range or a star.").format(text=shown))
    if star:
        values = list(range(low, high + 1))
    else:
        start = _number(first, low, high)
        end = start if last is None else _number(last, low, high)
        values = [*range(start, end + 1)] if start <= end else [*range(start, high + 1), *range(low, end + 1)]
    return set(values[:: int(step)] if step else values)


def _number(text: str, low: int, high: int) -> int:
    if not text.isdecimal() and text.lower() not in _NAMES:
        said = _("{text} is no number and no name of a month or weekday.")
        raise ValueError(said.format(text=f"'{text[:40]}'"))
    number = int(text) if text.isdecimal() else _NAMES[text.lower()]
    if not low <= number <= high:
        raise ValueError(_("{text} is outside {low}-{high}.").format(text=f"'{text[:40]}'", low=low, high=high))
    return number
