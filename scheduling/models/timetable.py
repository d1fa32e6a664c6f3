"""The timetable of a row, if this site allows it."""

from __future__ import annotations

from scheduling.conf import get_conf
from scheduling.core.cron import CronError
from scheduling.core.timetables import Timetable, counts_seconds, parse, require_whole_minutes


def timetable_of(expression: str) -> Timetable:
    """Parse a cron expression or an interval.

    Plain SQL can store an interval that counts seconds, and the setting CRON_SECONDS can change. So producers and pages
    call this function, and not only the validation. What was planned is read by `parse`, which asks no setting.

    Raises:
        CronError: it is refused, never matches, or counts seconds without the setting. The message is a sentence.
        ConfError: a setting is unusable.
    """
    timetable = parse(expression)
    if not get_conf().seconds:
        require_whole_minutes(timetable)
    return timetable


def is_asked_by_second(expression: str) -> bool:
    """Whether occurrences may lie between two whole minutes. False for an expression that is refused, and for none."""
    try:
        return counts_seconds(parse(expression))
    except CronError:
        return False
