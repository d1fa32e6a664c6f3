"""Reads the entries of a calendar: one entry a line, such as `2026-12-25 Christmas` or `sat,sun`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date

from scheduling.core.cron_error import CronError
from scheduling.core.messages import FIRST_YEAR, LAST_YEAR
from scheduling.core.text import visible_text
from scheduling.core.words import gettext as _
from scheduling.core.words import grouped, language

MOST_ENTRIES = 100_000
LONGEST_TEXT = 2_000_000
"""A calendar has at most so many characters."""
LONGEST_LINE = 300
DAY_NAMES = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
MINUTES_A_DAY = 1440
WHOLE_DAY = (0, MINUTES_A_DAY)


class CalendarError(CronError):
    """A calendar cannot be used, so no time of its schedules can be told. The message is a sentence for users. It names
    the line if one line is wrong. `language` is that of the message."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.language = language()


Window = tuple[int, int]
"""From which minute of the day, and up to which. The second is greater than 1,440 if the window passes midnight."""


@dataclass(frozen=True, slots=True)
class Range:
    """One range of local time.

    Args:
        first, end: minutes, counted from the beginning of the day with the ordinal 0 (`date.toordinal`).
    """

    first: int
    end: int


@dataclass(frozen=True, slots=True)
class Weekly:
    """A window on days of each week. Monday is 0."""

    days: tuple[int, ...]
    window: Window = WHOLE_DAY


@dataclass(frozen=True, slots=True)
class Yearly:
    """Days of each year, from one (month, day) to another, which may lie in the next year.

    A window belongs to a single day.
    """

    first: tuple[int, int]
    last: tuple[int, int]
    window: Window = WHOLE_DAY


@dataclass(frozen=True, slots=True)
class Entry:
    """One line. Its reason is its label, or else the line itself."""

    when: Range | Weekly | Yearly
    reason: str


_DATE = r"(\d{4}-\d{1,2}-\d{1,2})"
_TIME = r"(\d{1,2}:\d{2})"
_WINDOW = rf"(?:{_TIME}\s*-\s*{_TIME})"
_OWN_WINDOW = rf"(?:\s+{_WINDOW})?"
_MONTH_DAY = r"(\d{1,2}-\d{1,2})"
_DAY = "(?:mon(?:day)?|tue(?:sday)?|wed(?:nesday)?|thu(?:rsday)?|fri(?:day)?|sat(?:urday)?|sun(?:day)?)"
_DAYS = rf"({_DAY}(?:\s*[-,]\s*{_DAY})*)"
_END = r"(?=\s|$)"


def _pattern(text: str) -> re.Pattern[str]:
    return re.compile(text + _END, re.ASCII | re.IGNORECASE)


def parse_entries(text: str, most: int = MOST_ENTRIES) -> list[Entry]:
    """The entries of a text, at most `most`. Empty lines and lines that begin with `#` are left out.

    Raises:
        CalendarError: a line is wrong, or there is too much.
    """
    if len(text) > LONGEST_TEXT:
        said = _("A calendar has at most {most} characters. This one has {length}.")
        raise CalendarError(said.format(most=grouped(LONGEST_TEXT), length=grouped(len(text))))
    found: list[Entry] = []
    for number, line in _lines(text):
        if len(found) == most:
            said = _("Line {number}: a calendar has at most {most} entries.")
            raise CalendarError(said.format(number=number, most=grouped(most)))
        try:
            found.append(parse_entry(line))
        except CalendarError as error:
            raise CalendarError(_("Line {number}: {fault}").format(number=number, fault=error)) from None
    return found


def wrong_lines(text: str, most: int) -> list[str]:
    """Sentences about the first wrong lines of a text, at most `most`."""
    found: list[str] = []
    for number, line in _lines(text[: LONGEST_TEXT + 1]):
        if len(found) == most:
            break
        try:
            parse_entry(line)
        except CalendarError as error:
            found.append(_("Line {number}: {fault}").format(number=number, fault=error))
    return found


def parse_entry(line: str) -> Entry:
    """The entry of one line.

    Raises:
        CalendarError: the line is no entry. The message does not name its number.
    """
    if len(line) > LONGEST_LINE:
        raise CalendarError(_("an entry has at most {most} characters.").format(most=LONGEST_LINE))
    for pattern, read in _KINDS:
        if (match := pattern.match(line)) is not None:
            label = line[match.end() :].strip()
            _check_label(label, match[0])
            return Entry(read(*match.groups()), visible_text(label or match[0].strip()))
    said = _(
        "“{text}” is no entry. Write a date (2026-12-25), a range (2026-12-24..2027-01-02), a date of each year "
        "(every 12-25), days of the week (sat,sun or mon-fri 09:00-17:30) or a time of each day (22:00-06:00), "
        "and then the reason."
    )
    raise CalendarError(said.format(text=visible_text(line, 60)))


def _lines(text: str) -> Iterator[tuple[int, str]]:
    for number, raw in enumerate(text.split("\n"), 1):
        if (line := raw.strip()) and not line.startswith("#"):
            yield number, line


_MORE_TIME = re.compile(
    r"\d{1,2}\s*(?:[:.-]\s*\d|[ap]m\b|h\b)|\d{4}-\d|[-\u2013,.;:/]|[ap]m\b", re.ASCII | re.IGNORECASE
)


def _check_label(label: str, entry: str) -> None:
    # A label that looks like a time is a mistake: the entry would exclude more, or less, than was meant.
    if _MORE_TIME.match(label):
        said = _(
            "“{label}” after “{entry}” is neither a window nor a reason. Write a window as 09:00-17:30, in 24 hours."
        )
        raise CalendarError(said.format(label=visible_text(label, 40), entry=visible_text(entry, 60)))


def _date(text: str) -> int:
    year, month, day = (int(part) for part in text.split("-"))
    try:
        found = date(year, month, day)
    except ValueError:
        raise CalendarError(_("there is no day {text}.").format(text=text)) from None
    if not FIRST_YEAR <= found.year <= LAST_YEAR:
        said = _("the date {text} does not lie between the years {first} and {last}.")
        raise CalendarError(said.format(text=text, first=FIRST_YEAR, last=LAST_YEAR))
    return found.toordinal()


def _time(text: str, last: int = MINUTES_A_DAY - 1) -> int:
    hour, minute = (int(part) for part in text.split(":"))
    if minute > 59 or (found := hour * 60 + minute) > last:
        until = "24:00" if last == MINUTES_A_DAY else "23:59"
        said = _("there is no time {text} here. Write one from 00:00 to {until}.")
        raise CalendarError(said.format(text=text, until=until))
    return found


def _window(first: str | None, last: str | None) -> Window:
    if first is None or last is None:
        return WHOLE_DAY
    start, end = _time(first), _time(last, MINUTES_A_DAY)
    if start == end:
        said = _("the window {first}-{last} is empty. A whole day is 00:00-24:00.")
        raise CalendarError(said.format(first=first, last=last))
    return start, end if end > start else end + MINUTES_A_DAY


def _range(first: str, first_time: str | None, last: str, last_time: str | None) -> Range:
    start = _date(first) * MINUTES_A_DAY + (_time(first_time) if first_time else 0)
    end = _date(last) * MINUTES_A_DAY + (_time(last_time, MINUTES_A_DAY) if last_time else MINUTES_A_DAY)
    if end <= start:
        raise CalendarError(_("the end of the range is not later than its beginning."))
    return Range(start, end)


def _day(text: str, first: str | None, last: str | None) -> Range:
    day, (start, end) = _date(text) * MINUTES_A_DAY, _window(first, last)
    return Range(day + start, day + end)


def _month_day(text: str) -> tuple[int, int]:
    month, day = (int(part) for part in text.split("-"))
    try:
        date(2000, month, day)  # a leap year
    except ValueError:
        said = _("no year has a day {text}. Write the month first, as in 12-25.")
        raise CalendarError(said.format(text=text)) from None
    return month, day


def _yearly(first: str, last: str | None, start: str | None, end: str | None) -> Yearly:
    if last is not None and start is not None:
        raise CalendarError(_("a range of days has no window. Write a line for each day."))
    return Yearly(_month_day(first), _month_day(last or first), _window(start, end))


def _weekly(days: str, first: str | None, last: str | None) -> Weekly:
    found: set[int] = set()
    for part in days.lower().split(","):
        ends = [DAY_NAMES.index(name.strip()[:3]) for name in part.split("-")]
        if len(ends) > 2:
            said = _("“{text}” is no range of days. Write it as mon-fri.")
            raise CalendarError(said.format(text=part.strip()))
        found |= {(ends[0] + step) % 7 for step in range((ends[-1] - ends[0]) % 7 + 1)}
    return Weekly(tuple(sorted(found)), _window(first, last))


def _daily(first: str, last: str) -> Weekly:
    return Weekly(tuple(range(7)), _window(first, last))


_KINDS: tuple[tuple[re.Pattern[str], Callable[..., Range | Weekly | Yearly]], ...] = (
    (_pattern(rf"{_DATE}(?:[ T]{_TIME})?\s*\.\.\s*{_DATE}(?:[ T]{_TIME})?"), _range),
    (_pattern(rf"{_DATE}{_OWN_WINDOW}"), _day),
    (_pattern(rf"every\s+{_MONTH_DAY}(?:\s*\.\.\s*{_MONTH_DAY})?{_OWN_WINDOW}"), _yearly),
    (_pattern(rf"(?:every\s+)?{_DAYS}{_OWN_WINDOW}"), _weekly),
    (_pattern(rf"(?:(?:daily|every\s+day)\s+)?{_WINDOW}"), _daily),
)
