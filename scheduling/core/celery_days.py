"""Says a crontab of Celery in our dialect, with one expression or several that have no run in common.

Celery needs both day fields. Our dialect, as cron, needs both only if one of them begins with ``*``. So days are said
by one of these forms; a month may need another form than the others, because it is shorter:

- one of the fields alone, if the other one holds all days;
- a step, which begins with ``*``: weekday ``*/6`` is Sunday and Saturday, day ``*/31`` is the first;
- ``d#k``, if the days of the month are whole weeks that are counted from the first: 1 to 7, 8 to 14, and so on.

What none of them says is refused. It is never said approximately.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from itertools import groupby

from scheduling.core.celery_crontab import MOST_DAYS, CeleryCrontab
from scheduling.core.cron_error import CronError
from scheduling.core.dialect import MAX_LENGTH
from scheduling.core.timetables import parse
from scheduling.core.words import gettext as _

_ALL_WEEKDAYS = frozenset(range(7))
_DAY_STEPS = {step: frozenset(range(1, 32, step)) for step in range(2, 32)}
_WEEKDAY_STEPS = {step: frozenset(range(0, 7, step)) for step in range(2, 8)}
_WEEKS = {week: frozenset(range(7 * week - 6, min(7 * week, 31) + 1)) for week in range(1, 6)}

_READ = {59: ("{} 0 1 1 *", "minutes"), 23: ("0 {} 1 1 *", "hours"), 12: ("0 0 * {} *", "months")}
"""By the last value of a field: an expression with this field, and the attribute that has its values."""

Form = tuple[str, str]
"""A day-of-month field and a weekday field."""


class CannotSay(ValueError):
    """No expression of the dialect says these times. The message is a sentence that says what to do instead."""


def expressions(crontab: CeleryCrontab) -> list[str]:
    """The expressions that run, together, at the local times of the crontab, and none of them at a time of another one.

    Raises:
        CannotSay: there are none.
    """
    minute = field_text(crontab.texts[0], crontab.minutes, 0, 59)
    hour = field_text(crontab.texts[1], crontab.hours, 0, 23)
    months: dict[tuple[Form, ...], set[int]] = {}
    for month in sorted(crontab.months):
        if any(day <= MOST_DAYS[month] for day in crontab.days):
            months.setdefault(tuple(_forms(crontab, month)), set()).add(month)
    found = [
        " ".join((minute, hour, day, field_text(crontab.texts[3], some, 1, 12), weekday))
        for forms, some in months.items()
        for day, weekday in forms
    ]
    for one in found:
        if len(one) > MAX_LENGTH:
            said = _("The expression would have more than {most} characters; write several schedules.")
            raise CannotSay(said.format(most=MAX_LENGTH))
        try:
            parse(one)
        except CronError as error:
            raise CannotSay(str(error)) from None
    return found


def field_text(text: str, values: Collection[int], low: int, high: int) -> str:
    """A field with these values: as it was written, if our dialect reads it so, else written anew."""
    written, (expression, name) = text.replace(" ", ""), _READ[high]
    try:
        if set(getattr(parse(expression.format(written)), name)) == set(values):
            return written
    except CronError:
        pass
    return "*" if len(values) == high - low + 1 else listed(values)


def listed(values: Iterable[int]) -> str:
    """A list of numbers and ranges."""
    numbers = sorted(values)
    parts: list[str] = []
    for _key, group in groupby(enumerate(numbers), lambda pair: pair[1] - pair[0]):
        some = [number for _place, number in group]
        parts += [f"{some[0]}-{some[-1]}"] if len(some) > 2 else map(str, some)
    return ",".join(parts)


def _forms(crontab: CeleryCrontab, month: int) -> list[Form]:
    """The two day fields for one month, in one form or in several."""
    month_days = frozenset(range(1, MOST_DAYS[month] + 1))
    days, weekdays = crontab.days & month_days, crontab.weekdays
    if days == month_days:
        return [("*", "*" if weekdays == _ALL_WEEKDAYS else listed(weekdays))]
    if weekdays == _ALL_WEEKDAYS:
        return [(listed(crontab.days), "*")]
    if (found := _by_step(crontab, days, month_days)) is not None:
        return [found]
    if (weeks := _weeks(days, month_days)) is not None:
        return [_counted(weekdays, weeks)]
    for step, some in sorted(_DAY_STEPS.items(), reverse=True):
        rest = days - some
        if (some & month_days) <= days and rest and (weeks := _weeks(rest, month_days)) is not None:
            return [(f"*/{step}", listed(weekdays)), _counted(weekdays, weeks)]
    said = _(
        "Celery asks for both a day of the month ({days}) and a weekday ({weekdays}), where cron takes either. Write a "
        "schedule for the days, with a calendar that excludes the other weekdays."
    )
    raise CannotSay(said.format(days=listed(crontab.days), weekdays=listed(weekdays)))


def _by_step(crontab: CeleryCrontab, days: frozenset[int], month_days: frozenset[int]) -> Form | None:
    """Both fields, one of them as a step, which begins with ``*``."""
    for step, some in sorted(_WEEKDAY_STEPS.items()):
        if some == crontab.weekdays:
            return listed(crontab.days), f"*/{step}"
    # A step that means the same days in each month comes first, so that all months have one form.
    for step, some in sorted(_DAY_STEPS.items(), key=lambda pair: (pair[1] != crontab.days, -pair[0])):
        if some & month_days == days:
            return f"*/{step}", listed(crontab.weekdays)
    return None


def _weeks(days: frozenset[int], month_days: frozenset[int]) -> list[int] | None:
    """The numbers of the weeks whose days these are; None if they are not whole weeks."""
    found = [week for week, some in _WEEKS.items() if some & days]
    whole = frozenset[int]().union(*(_WEEKS[week] for week in found)) & month_days
    return found if whole == days else None


def _counted(weekdays: Iterable[int], weeks: Iterable[int]) -> Form:
    return "*", ",".join(f"{weekday}#{week}" for weekday in sorted(weekdays) for week in weeks)
