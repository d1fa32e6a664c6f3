"""Describes an interval in plain English, such as "At 08:00, every second Friday, counted from 2026-01-09"."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from scheduling.core.intervals import FIRST_DAY, DayInterval, RealInterval

WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")

_ORDINALS = ("", "", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth")
_UNITS = (("hour", 3_600), ("minute", 60), ("second", 1))
_FEW = 120
"""A length of fewer minutes is told in minutes alone ("90 minutes"), and one of fewer seconds in seconds alone."""


def describe_interval(interval: RealInterval | DayInterval) -> str:
    """One sentence without a full stop. Times are in the 24-hour format."""
    return _real(interval) if isinstance(interval, RealInterval) else _days(interval)


def joined(words: Sequence[str]) -> str:
    """The words as a list in a sentence: "a, b and c"."""
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def _real(interval: RealInterval) -> str:
    since = f"{interval.start.isoformat(' ', 'seconds' if interval.start.second else 'minutes')[:-6]} UTC"
    return f"Every {_length(interval.step)}, counted from {since}"


def _length(step: timedelta) -> str:
    rest = step // timedelta(seconds=1)
    for unit, size in _UNITS:
        if rest == size:
            return unit
        if rest % size == 0 and (unit == "hour" or rest < _FEW * size):
            return f"{rest // size} {unit}s"
    parts = []
    for unit, size in _UNITS:
        number, rest = divmod(rest, size)
        if number:
            parts.append(f"{number} {unit}" if number == 1 else f"{number} {unit}s")
    return joined(parts)


def _days(interval: DayInterval) -> str:
    time = f"At {interval.hours[0]:02}:{interval.minutes[0]:02}"
    since = f"counted from {interval.start}" if interval.number > 1 else f"from {interval.start}"
    end = f", {since}" if interval.number > 1 or interval.start != FIRST_DAY else ""
    return f"{time}, every {_rounds(interval)}{end}"


def _rounds(interval: DayInterval) -> str:
    number, names = interval.number, [WEEKDAYS[day] for day in interval.weekdays]
    if not names:
        return _counted(number, "day")
    if len(names) == 1 and number < len(_ORDINALS):
        return _counted(number, names[0])
    if number == 1:
        return "day" if len(names) == len(WEEKDAYS) else joined(names)
    return f"{_counted(number, 'week')} on {joined(names)}"


def _counted(number: int, noun: str) -> str:
    if number == 1:
        return noun
    return f"{_ORDINALS[number]} {noun}" if number < len(_ORDINALS) else f"{number} {noun}s"
