"""An expression in plain English, for people who do not read cron.

cron-descriptor says the time of day and the day of month. Months and weekdays are said here: the library takes their
names from the process's locale, cannot say several ``d#k``, and knows nothing of Debian's day rule.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from cron_descriptor import ExpressionDescriptor, Options

from scheduling.core.cron import Cron, parse

# fmt: off
_MONTHS = ("January", "February", "March", "April", "May", "June",
           "July", "August", "September", "October", "November", "December")
# fmt: on
_WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_ORDINALS = ("", "first", "second", "third", "fourth", "fifth")
_MOST_LISTED = 6


@lru_cache(maxsize=1024)
def describe(expression: str) -> str:
    """One sentence, such as "At 09:00, Monday through Friday"; raises CronError for an expression that is refused.

    The clock has 24 hours and the words are English whatever the locale. Should the library fail on a valid
    expression, the expression itself is the answer: a page must not break for want of a sentence.
    """
    cron = parse(expression)
    try:
        return _times(cron) + _weekdays(cron) + _months(cron)
    except Exception:
        # The library documents "Exception" for what it raises.
        return cron.expression


def _times(cron: Cron) -> str:
    minute, hour, day = cron.expression.split()[:3]
    minute, hour = _field(minute, cron.minutes, 60), _field(hour, cron.hours, 24)
    if len(cron.minutes) == 1 and "," in hour:
        hour = ",".join(map(str, cron.hours))  # "At 09:00, 10:00 and 11:00", not "At 09:00 through 11:59"
    options = Options(locale_code="en_US", use_24hour_time_format=True)
    text = ExpressionDescriptor(f"{minute} {hour} {_days(cron, day)} * *", options).get_description()
    # The days start anew each month, which the library does not say.
    text = re.sub(r"(every \d+ days)$", r"\1, starting on day 1 of the month", text)
    return re.sub(r"\bL of the month", "the last day of the month", text)


def _field(text: str, values: tuple[int, ...], size: int) -> str:
    """The field in the spelling that the library says best: by its values, without zeros in front.

    It takes 59/15 for a repetition and 5-5 for a range, and stumbles over steps in a list.
    """
    if len(values) == size:
        return "*"
    # "Every 40 minutes" would be a lie: the hour begins anew at 0.
    uneven = text.startswith("*/") and size % int(text[2:]) and len(values) <= _MOST_LISTED
    if "," in text or uneven or len(values) == 1:
        return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in _stretches(values))
    return re.sub(r"\d+", lambda number: str(int(number[0])), text)


def _days(cron: Cron, text: str) -> str:
    if _every_day(cron):
        return "*"
    if cron.last_day:
        return ",".join(filter(None, [_field(",", cron.days, 31), "L"]))
    # A few days of the month are clearer by their numbers than by their distance.
    return _field("," if "/" in text and len(cron.days) <= _MOST_LISTED else text, cron.days, 31)


def _weekdays(cron: Cron) -> str:
    if cron.nth:
        which = _joined([f"the {_ORDINALS[k]} {_WEEKDAYS[(d - 1) % 7]}" for d, k in cron.nth])
        return f", on {which} of the month"
    if len(cron.weekdays) == 7 or (cron.either and len(cron.days) == 31):
        return ""
    # The week begins on Monday here, so that 5-7 reads "Friday through Sunday".
    words = _runs([(d - 1) % 7 for d in cron.weekdays], _WEEKDAYS)
    if _every_day(cron):
        return f", {words}" if " through " in words and " and " not in words else f", only on {words}"
    return f", or on {words}" if cron.either else f", but only on {words}"


def _every_day(cron: Cron) -> bool:
    """Whether the days of the month leave every date in: all of them, or all weekdays where either is enough."""
    return len(cron.days) == 31 or (cron.either and len(cron.weekdays) == 7)


def _months(cron: Cron) -> str:
    if len(cron.months) == 12:
        return ""
    return f", only in {_runs([m - 1 for m in cron.months], _MONTHS)}"


def _runs(places: list[int], names: Sequence[str]) -> str:
    """Names at these places; three or more in a row become "first through last"."""
    return _joined(
        [names[a] if a == b else f"{names[a]} through {names[b]}" for a, b in _stretches(tuple(sorted(places)))]
    )


def _stretches(values: tuple[int, ...]) -> list[tuple[int, int]]:
    """First and last of each run of three or more consecutive values, ascending; the others stand for themselves."""
    found: list[tuple[int, int]] = []
    for value in values:
        if found and found[-1][1] == value - 1:
            found[-1] = (found[-1][0], value)
        else:
            found.append((value, value))
    return [part for a, b in found for part in ([(a, b)] if b - a > 1 else [(v, v) for v in range(a, b + 1)])]


def _joined(words: list[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
