"""The next occurrences of a schedule that its calendar or a freeze of the site excludes."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from scheduling.core.calendars import CalendarError
from scheduling.core.cron import CronError, ZoneError
from scheduling.core.excluded_runs import ExcludedRun, Excludes, Freeze, excluded_runs
from scheduling.core.pauses import Scope
from scheduling.core.text import visible_text
from scheduling.execution.work_pauses import pauses_now
from scheduling.models import Scheduler
from scheduling.models.exclusions import NamedCalendar, calendar

MOST = 20


@dataclass
class ExcludedRuns:
    """What was found, or why nothing could be looked for.

    Args:
        runs: ascending, at most `MOST`.
        problem: a sentence; empty if all could be looked for.
    """

    calendar: NamedCalendar | None = None
    freeze: Freeze | None = None
    runs: list[ExcludedRun] = field(default_factory=list)
    problem: str = ""

    def is_frozen(self, run: ExcludedRun) -> bool:
        """Whether the freeze excludes it: its run is made, and waits. What the calendar excludes is never made."""
        return self.calendar is None or run.source == 1


def excluded_runs_of(row: Scheduler, now: datetime, count: int = MOST) -> ExcludedRuns:
    """The next excluded occurrences of a schedule. A paused schedule would have them.

    The calendar decides about what a freeze excludes, too.
    """
    found = ExcludedRuns(freeze=freeze_now(now))
    sources: list[Excludes] = []
    if row.calendar_id is not None:
        found.calendar = calendar(row.calendar_id)
        try:
            sources.append(found.calendar.usable())
        except CalendarError as error:
            found.problem = visible_text(error, 500)
            return found
    if found.freeze is not None:
        sources.append(found.freeze)
    if sources:
        try:
            found.runs = list(excluded_runs(row.assigned().times.after, sources, now, min(count, MOST)))
        except (CronError, ZoneError) as error:
            found.problem = visible_text(error, 500)
    return found


def freeze_now(now: datetime) -> Freeze | None:
    """The pause of the whole site, as an exclusion that has begun; None if there is none."""
    site = next((pause for pause in pauses_now(now) if pause.scope == Scope.SITE), None)
    return None if site is None else Freeze(now, site.until, site.sentence())
