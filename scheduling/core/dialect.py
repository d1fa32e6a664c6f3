"""The cron dialect: which expressions are accepted, and what each field means.

An expression has five fields, ``minute hour day-of-month month weekday``, or is an alias (``@daily``). A field is a
comma-separated list of numbers, names (``jan``, ``mon``), ranges ``a-b``, and steps ``a-b/n`` or ``a/n`` (from a to the
end of the field). Instead of a list, a field may be ``*`` or ``*/n``. Weekdays are 0-7, and both 0 and 7 are Sunday.
Day of month also allows ``L``, the last day of the month. Weekday also allows ``d#k``, the k-th weekday d of the month.
Every other expression is refused, because a misread schedule would do more harm than a refused one. The error says what
to write instead. The module ``interval_dialect`` has the dialect of intervals (``@every``).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import date

from scheduling.core.cron_error import CronError, part_error, quote
from scheduling.core.days import count_days, first_day, format_days
from scheduling.core.words import gettext as _

MAX_LENGTH = 255
ALIASES = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_WEEKDAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_ITEM = re.compile(r"([^-/]+)(?:-([^-/]+))?(?:/([^-/]+))?")
_LAST_DAY_FORMS = re.compile(r"\d*L\d*|L[-W].*|.*WL?|.*-L|L/.*", re.IGNORECASE)
_CHOSEN_FORMS = re.compile(r"[HR](\(.*\))?(/.*)?", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Cron:
    """A valid cron expression, made by ``parse``.

    Comparisons use only ``expression``, because ``expression`` determines all other attributes.
    """

    expression: str
    """The expression with its alias expanded and single spaces between the fields."""
    interval: bool = field(compare=False)
    """True for a real-time schedule, False for a fixed schedule. The module ``cron`` explains the two kinds."""
    minutes: tuple[int, ...] = field(compare=False, repr=False)
    """Minutes of the hour, ascending."""
    hours: tuple[int, ...] = field(compare=False, repr=False)
    """Hours of the day, ascending."""
    days: tuple[int, ...] = field(compare=False, repr=False)
    """Days of the month, ascending, without ``L``."""
    last_day: bool = field(compare=False, repr=False)
    """Whether the day-of-month field contains ``L``."""
    months: tuple[int, ...] = field(compare=False, repr=False)
    """Months of the year, 1-12, ascending."""
    weekdays: tuple[int, ...] = field(compare=False, repr=False)
    """Weekdays from 0 (Sunday) to 6, ascending, including the weekday d of each item ``d#k``."""
    nth: tuple[tuple[int, int], ...] = field(compare=False, repr=False)
    """A pair (d, k) for each item ``d#k``, ascending."""
    either: bool = field(compare=False, repr=False)
    """Whether a date matches even if only its day of month or only its weekday matches. False if one of these fields
    begins with ``*``: then both must match."""
    calendar: str = field(compare=False, repr=False)
    """Day of month, month and weekday, as ``days.format_days`` spells them for croniter."""

    def first_day(self, day: date) -> date | None:
        """The first matching date on or after ``day``; None if there is none within 50 years or before year 10000."""
        return first_day(self.calendar, day)

    def count_days(self, start: date, end: date) -> int:
        """How many dates match in [start, end)."""
        return count_days(self.calendar, start, end)


@dataclass(frozen=True, slots=True)
class _Field:
    name: str
    low: int
    high: int  # the highest number that may be written
    last: int  # where "*" and "a/n" end; 6 for weekdays, because 7 is Sunday again
    names: dict[str, int] = field(default_factory=dict)

    @property
    def size(self) -> int:
        return self.last - self.low + 1

    def error(self, sentence: str) -> CronError:
        return part_error(self.name, sentence)

    def number(self, text: str) -> int:
        if not text.isdigit():
            if text.lower() in self.names:
                return self.names[text.lower()]
            said = _("{text} is not understood; write a number {low}-{high}.")
            if self.names:
                said = _("{text} is not understood; write a number {low}-{high} or a name such as '{name}'.")
            name = next(iter(self.names), "")
            raise self.error(said.format(text=quote(text), low=self.low, high=self.high, name=name))
        number = int(text)
        if not self.low <= number <= self.high:
            said = _("{text} is outside {low}-{high}.")
            raise self.error(said.format(text=quote(text), low=self.low, high=self.high))
        return number


_MINUTE = _Field("minute", 0, 59, 59)
_HOUR = _Field("hour", 0, 23, 23)
_DAY = _Field("day of month", 1, 31, 31)
_MONTH = _Field("month", 1, 12, 12, {name: number for number, name in enumerate(_MONTHS, 1)})
_WEEKDAY = _Field("weekday", 0, 7, 6, {name: number for number, name in enumerate(_WEEKDAYS)})


def parse_cron(words: list[str]) -> Cron:
    """Parse the words of an expression. Raises CronError if the dialect refuses it, or if no date ever matches."""
    minute, hour, day, month, weekday = texts = _fields(words)
    minutes, hours, months = _values(_MINUTE, minute), _values(_HOUR, hour), _values(_MONTH, month)
    days, last_day = _values(_DAY, day), "L" in day.upper().split(",")
    nth = _nth(weekday, day) if "#" in weekday else ()
    weekdays = tuple(sorted({d for d, _k in nth})) if nth else _values(_WEEKDAY, weekday)
    # Debian's cron and ISC's cron look only at the first character, so "*/2" counts as a star here.
    either = not day.startswith("*") and not weekday.startswith("*")
    calendar = format_days(day, weekday, days, last_day, months, weekdays, nth, either)
    if first_day(calendar, date(2000, 1, 1)) is None:
        dates = " ".join(texts[2:])
        said = _("no date ever matches '{dates}', so this would never fire; choose a day that the month has.")
        raise _DAY.error(said.format(dates=dates))
    interval = minute.startswith("*") or hour.startswith("*")
    return Cron(" ".join(texts), interval, minutes, hours, days, last_day, months, weekdays, nth, either, calendar)


def words_of(expression: str) -> list[str]:
    """The words of an expression. Raises CronError if the text is too long or not ASCII."""
    # The length is checked first, because a huge text would take long to parse.
    if len(expression) > MAX_LENGTH:
        said = _("The expression has {length} characters; shorten it to at most {most}.")
        raise CronError(said.format(length=len(expression), most=MAX_LENGTH))
    if not all(" " <= character <= "~" or character == "\t" for character in expression):
        raise CronError(_("The expression holds characters that are not plain ASCII; type it again."))
    return expression.split()


def _fields(texts: list[str]) -> list[str]:
    if texts and texts[0].startswith("@"):
        alias = ALIASES.get(" ".join(texts).lower())
        if alias is None:
            said = _("{text} is not an alias; use one of {aliases}, or an interval such as '@every 90m'.")
            raise CronError(said.format(text=quote(" ".join(texts)), aliases=", ".join(ALIASES)))
        texts = alias.split()
    if len(texts) != 5:
        said = _(
            "Write five fields (minute, hour, day of month, month, weekday) or an alias such as @daily, "
            "not {count}; seconds and years are not supported."
        )
        raise CronError(said.format(count=len(texts)))
    return texts


def _values(kind: _Field, text: str) -> tuple[int, ...]:
    items = text.split(",")
    found: set[int] = set()
    for item in items:
        if item.startswith("*") and len(items) > 1:
            # Other cron programs read such a list as the whole field. They treat the schedule as a real-time schedule
            # only if the list begins with the star. The author of the expression probably expects something else.
            said = _("'*' cannot stand in a list; write '*' alone, or a range such as {low}-{last}.")
            raise kind.error(said.format(low=kind.low, last=kind.last))
        if not (kind is _DAY and item.upper() == "L"):  # the last day has no fixed number
            found.update(_range(kind, item))
    # Weekday 7 is Sunday, like 0.
    return tuple(sorted({value % 7 for value in found} if kind is _WEEKDAY else found))


def _range(kind: _Field, item: str) -> range:
    _refuse_foreign(kind, item)
    match = _ITEM.fullmatch(item)
    if match is None:
        said = _("{text} is not understood; write a number, 'a-b', 'a-b/n', 'a/n', '*' or '*/n'.")
        raise kind.error(said.format(text=quote(item)))
    start, end, step_text = match.groups()
    step = _step(kind, step_text) if step_text else 1
    if start == "*" and end is None:
        return range(kind.low, kind.last + 1, step)
    low = kind.number(start)
    if end is None:
        if low > kind.last and step_text:
            said = _("{text} begins at the end of the week; count from 0 or name the days.")
            raise kind.error(said.format(text=quote(item)))
        return range(low, (kind.last if step_text else low) + 1, step)
    high = kind.number(end)
    if low > high:
        said = _("{text} runs backwards; use {forwards}.")
        raise kind.error(said.format(text=quote(item), forwards=_forwards(kind, low, high, step)))
    return range(low, high + 1, step)


def _step(kind: _Field, text: str) -> int:
    # For a step longer than the field ("*/90"), other cron programs use only the first value of the field. The author
    # of the expression probably expects something else.
    step = int(text) if text.isdigit() else 0
    if not 1 <= step <= kind.size:
        raise kind.error(_("the step {step} must be a number 1-{most}.").format(step=quote(text), most=kind.size))
    return step


def _forwards(kind: _Field, low: int, high: int, step: int) -> str:
    """The spelling that the error suggests for a backwards range, such as Friday to Monday."""
    if kind is _WEEKDAY and high == 0 and low < 7 and step == 1:
        return f"{low}-7"
    low = low if low <= kind.last else kind.low
    around = [*range(low, kind.last + 1), *range(kind.low, high + 1)] if low > high else [*range(low, high + 1)]
    if kind is _WEEKDAY or step > 1:
        return ",".join(map(str, around[::step]))
    return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in ((low, kind.last), (kind.low, high)))


def _refuse_foreign(kind: _Field, item: str) -> None:
    """Refuse spellings that only other cron programs accept. Each spelling has its own error message."""
    if not item:
        raise kind.error(_("an item of the list is empty; remove the extra comma."))
    said = ""
    if "?" in item:
        said = _("'?' is not supported; write '*'.")
    elif "#" in item:
        said = _("{text} is not understood; only a weekday may have '#', as in '1#2'.")
    elif _CHOSEN_FORMS.fullmatch(item):
        said = _("{text} (a value chosen by the program) is not supported; write the number you want.")
    elif _LAST_DAY_FORMS.fullmatch(item):
        said = _("{text} is not supported; only a day of month may be 'L', the last of the month.")
    if said:
        raise kind.error(said.format(text=quote(item)))


def _nth(text: str, day: str) -> tuple[tuple[int, int], ...]:
    if day != "*":
        # Cron programs disagree: some require both fields to match, others require one match. croniter ignores one
        # field.
        raise _DAY.error(_("with '#' in the weekday it must be '*', not {text}.").format(text=quote(day)))
    found: set[tuple[int, int]] = set()
    for item in text.split(","):
        weekday, mark, number = item.partition("#")
        if not mark:
            raise _WEEKDAY.error(_("days with and without '#' cannot be mixed; write two schedules."))
        if not (number.isdigit() and 1 <= int(number) <= 5):
            raise _WEEKDAY.error(_("the number after '#' in {text} must be 1-5.").format(text=quote(item)))
        found.add((_WEEKDAY.number(weekday) % 7, int(number)))
    return tuple(sorted(found))
