"""What the column ``schedule`` of a row may hold: a cron expression, or an interval (``@every``)."""

from __future__ import annotations

from functools import lru_cache
from typing import TypeAlias

from scheduling.core.cron_error import CronError
from scheduling.core.dialect import Cron, parse_cron, words_of
from scheduling.core.interval_dialect import EVERY, parse_interval
from scheduling.core.intervals import DayInterval, RealInterval
from scheduling.core.words import gettext as _

DailyTimes: TypeAlias = Cron | DayInterval
"""A timetable of local dates and times of the day."""

Timetable: TypeAlias = DailyTimes | RealInterval
"""Each timetable has the attribute ``expression``, a spelling that is the same for each text with this meaning."""


@lru_cache(maxsize=4096)
def parse(expression: str) -> Timetable:
    """Parse an expression. Raises CronError if it is refused, or if no date ever matches."""
    words = words_of(expression)
    return parse_interval(words[1:]) if words and words[0].lower() == EVERY else parse_cron(words)


def counts_seconds(timetable: Timetable) -> bool:
    """Whether some occurrences of the timetable are not at a whole minute."""
    return isinstance(timetable, RealInterval) and timetable.has_seconds


def require_whole_minutes(timetable: Timetable) -> None:
    """Raises CronError if some occurrences of the timetable are not at a whole minute."""
    if counts_seconds(timetable):
        said = _(
            "'{expression}' counts seconds, which this site does not allow; "
            "write whole minutes, such as '@every 1m', or let the setting CRON_SECONDS be true."
        )
        raise CronError(said.format(expression=timetable.expression))
