"""The dialect of intervals: ``@every 90m from 2026-01-05T00:00Z`` or ``@every 2w on mon,fri at 08:00 from 2026-01-09``.

After ``@every`` stands a length, and after it, in any order: ``on`` weekdays, ``at`` a time of the day, ``from`` the
beginning. Hours, minutes and seconds (``1h30m``, ``90s``) begin at an instant, which has an offset. Days and weeks
(``3d``, ``2w``) begin on a local date; only they have a time of the day, which is midnight if it is left out, and only
weeks have weekdays. Every other text is refused, with a sentence that says what to write instead.
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta
from typing import NoReturn

from scheduling.core.cron_error import part_error, quote
from scheduling.core.intervals import FIRST_DAY, FIRST_INSTANT, DayInterval, RealInterval
from scheduling.core.words import gettext as _

EVERY = "@every"
WEEKDAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")

LONGEST_DAYS = 3_660
"""The longest interval: ten years, and some days more, so that a long one may be written in any unit."""

_UNITS = {"w": 604_800, "d": 86_400, "h": 3_600, "m": 60, "s": 1}
"""The length of each unit in seconds, the longest first."""
_DAYS = "wd"
_CLAUSES = ("on", "at", "from")
_LENGTH = re.compile(r"(?:[0-9]+[a-z]+)+")
_PART = re.compile(r"([0-9]+)([a-z]+)")
_TIME = re.compile(r"([0-9]{1,2}):([0-9]{2})")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_READING = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}(?::[0-9]{2})?")
_INSTANT = re.compile(rf"{_READING.pattern}(?:Z|[+-][0-9]{{2}}:?[0-9]{{2}})")
# Some versions of Python also read 24:00, and offsets of more than 59 minutes.
_USUAL = re.compile(r".{11}(?:[01][0-9]|2[0-3])(?::[0-5][0-9]){1,2}(?:Z|[+-](?:[01][0-9]|2[0-3]):?[0-5][0-9])")


def parse_interval(words: list[str]) -> RealInterval | DayInterval:
    """Parse the words after ``@every``. Raises CronError if the dialect refuses them."""
    length, clauses = _clauses(words)
    units = _units(length)
    unit, number = next(iter(units.items()))
    return _days(unit, number, clauses) if unit in _DAYS else _real(units, clauses)


def _refuse(part: str, sentence: str) -> NoReturn:
    raise part_error(part, sentence)


def _clauses(words: list[str]) -> tuple[str, dict[str, str]]:
    """The length, and the text of each part that follows it."""
    found: dict[str, list[str]] = {"interval": []}
    here = "interval"
    for word in words:
        if (name := word.lower()) in _CLAUSES:
            if name in found:
                _refuse(name, _("'{name}' stands twice; write it once.").format(name=name))
            here = name
            found[here] = []
        else:
            found[here].append(word)
    length, *more = found.pop("interval") or [""]
    if more and _LENGTH.fullmatch(more[0].lower()):
        said = _("write the length without a space, such as {example}.")
        _refuse("interval", said.format(example=quote(length + more[0])))
    if more:
        said = _("{text} is not understood; only 'on', 'at' and 'from' may follow the length.")
        _refuse("interval", said.format(text=quote(more[0])))
    for name, texts in found.items():
        if not texts:
            said = _("something is missing after '{name}'; write it, or leave '{name}' out.")
            _refuse(name, said.format(name=name))
    # A list of weekdays may have spaces, and so may an instant, in place of its T.
    return length.lower(), {name: ("T" if name == "from" else "").join(texts) for name, texts in found.items()}


def _units(length: str) -> dict[str, int]:
    """The number of each unit, the longest first: days alone, weeks alone, or hours, minutes and seconds."""
    if not length:
        said = _("the length is missing; write '@every 90m', '@every 3d at 08:00' or '@every 2w on fri at 08:00'.")
        _refuse("interval", said)
    if length.isdigit():
        said = _("{text} has no unit; write {example} for minutes.")
        _refuse("interval", said.format(text=quote(length), example=quote(length + "m")))
    if not _LENGTH.fullmatch(length):
        said = _(
            "{text} is not understood; write whole numbers with units, as in '@every 90m', '@every 3d at 08:00' or "
            "'@every 2w on fri at 08:00'."
        )
        _refuse("interval", said.format(text=quote(length)))
    parts = [(unit, int(number)) for number, unit in _PART.findall(length)]
    for unit, _number in parts:
        if unit not in _UNITS:
            said = _(
                "the unit {unit} is not known; write s, m (minutes), h, d or w. "
                "For months and years, write a cron expression such as '0 8 1 * *'."
            )
            _refuse("interval", said.format(unit=quote(unit)))
    _require_order([unit for unit, _number in parts])
    units = dict(parts)
    seconds = sum(number * _UNITS[unit] for unit, number in parts)
    if not seconds:
        _refuse("interval", _("it must be longer than nothing; the shortest is '@every 1m'."))
    if seconds > LONGEST_DAYS * _UNITS["d"]:
        most = ", ".join(f"{LONGEST_DAYS * _UNITS['d'] // _UNITS[unit]}{unit}" for unit in "wdhm")
        said = _("{text} is longer than ten years; write at most {most}.")
        _refuse("interval", said.format(text=quote(length), most=most))
    return units


def _require_order(units: list[str]) -> None:
    days = [unit for unit in units if unit in _DAYS]
    if len(days) == len(units) > 1:
        _refuse("interval", _("weeks and days are not mixed; write days alone, such as '@every 10d'."))
    if days and len(days) < len(units):
        said = _(
            "days and weeks are local dates, and hours, minutes and seconds are real time, so they are not mixed; "
            "write hours alone, such as '@every 36h', or days and a time, such as '@every 1d at 08:00'."
        )
        _refuse("interval", said)
    if sorted(set(units), key=list(_UNITS).index) != units:
        _refuse("interval", _("write each unit once, and the longest first, such as '@every 1h30m'."))


def _real(units: dict[str, int], clauses: dict[str, str]) -> RealInterval:
    if "on" in clauses:
        _refuse_weekdays()
    if "at" in clauses:
        said = _(
            "hours, minutes and seconds are counted from an instant; write 'from 2026-01-05T08:00Z' instead of it."
        )
        _refuse("at", said)
    step = timedelta(seconds=sum(number * _UNITS[unit] for unit, number in units.items()))
    start = _instant(clauses["from"]) if "from" in clauses else FIRST_INSTANT
    since = "" if start == FIRST_INSTANT else f" from {_spelled(start)}"
    return RealInterval(f"{EVERY} {_length(step)}{since}", step, start)


def _refuse_weekdays() -> NoReturn:
    _refuse("on", _("only weeks have weekdays; write '@every 2w on fri', or leave 'on' out."))


def _length(step: timedelta) -> str:
    rest, found = step // timedelta(seconds=1), ""
    for unit in "hms":
        number, rest = divmod(rest, _UNITS[unit])
        found += f"{number}{unit}" if number else ""
    return found


def _spelled(instant: datetime) -> str:
    return instant.replace(tzinfo=None).isoformat(timespec="seconds" if instant.second else "minutes") + "Z"


def _instant(text: str) -> datetime:
    text = text.upper()
    if _DATE.fullmatch(text):
        said = _("{text} needs a time and an offset, such as 2026-01-05T00:00Z or 2026-01-05T00:00+01:00.")
        _refuse("from", said.format(text=quote(text)))
    if _READING.fullmatch(text):
        said = _("{text} has no offset; write {example}, or an offset such as +01:00.")
        _refuse("from", said.format(text=quote(text), example=quote(text + "Z")))
    if not _INSTANT.fullmatch(text):
        said = _(
            "{text} is no instant; write one of the years 0001 to 9999, "
            "such as 2026-01-05T00:00Z or 2026-01-05T00:00+01:00."
        )
        _refuse("from", said.format(text=quote(text)))
    try:
        if _USUAL.fullmatch(text):
            return datetime.fromisoformat(text).astimezone(UTC)
    except OverflowError:
        said = _("{text} lies outside the years 1-9999 in UTC; write a later or an earlier one.")
        _refuse("from", said.format(text=quote(text)))
    except ValueError:
        pass
    said = _("there is no instant {text}; correct the date, the time or the offset.")
    _refuse("from", said.format(text=quote(text)))


def _days(unit: str, number: int, clauses: dict[str, str]) -> DayInterval:
    start = _date(clauses["from"]) if "from" in clauses else FIRST_DAY
    hour, minute = _time(clauses.get("at", "00:00"))
    weekdays: tuple[int, ...] = ()
    if unit == "w":
        weekdays = _weekdays(clauses["on"]) if "on" in clauses else (start.weekday(),)
    elif "on" in clauses:
        _refuse_weekdays()
    on = f" on {','.join(WEEKDAYS[day] for day in weekdays)}" if weekdays else ""
    since = "" if start == FIRST_DAY else f" from {start.isoformat()}"
    expression = f"{EVERY} {number}{unit}{on} at {hour:02}:{minute:02}{since}"
    return DayInterval(expression, number, weekdays, (hour,), (minute,), start)


def _date(text: str) -> date:
    if _READING.match(text.upper()):
        said = _("days and weeks begin on a date; write it without a time, such as 2026-01-05 (see 'at').")
        _refuse("from", said)
    if not _DATE.fullmatch(text):
        said = _("{text} is no date; write one of the years 0001 to 9999, such as 2026-01-05.")
        _refuse("from", said.format(text=quote(text)))
    try:
        return date.fromisoformat(text)
    except ValueError:
        said = _("there is no date {text}; correct the year, the month or the day.")
        _refuse("from", said.format(text=quote(text)))


def _time(text: str) -> tuple[int, int]:
    match = _TIME.fullmatch(text)
    if match is None or int(match[1]) > 23 or int(match[2]) > 59:
        said = _("{text} is no time of the day; write one from 00:00 to 23:59.")
        _refuse("at", said.format(text=quote(text)))
    return int(match[1]), int(match[2])


def _weekdays(text: str) -> tuple[int, ...]:
    found = set()
    for item in text.lower().split(","):
        if not item:
            _refuse("on", _("a weekday of the list is missing; remove the extra comma."))
        if item not in WEEKDAYS:
            said = _("{text} is no weekday; write some of {weekdays}, with commas.")
            _refuse("on", said.format(text=quote(item), weekdays=",".join(WEEKDAYS)))
        found.add(WEEKDAYS.index(item))
    return tuple(sorted(found))
