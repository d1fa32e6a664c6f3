"""The next runs of a schedule."""

from __future__ import annotations

from datetime import UTC, datetime

from django.utils import timezone as clock

from scheduling.core.cron import CronError, ZoneError, next_after, parse
from scheduling.core.text import visible_text
from scheduling.models import Scheduler
from scheduling.operations.schedule_words import in_words
from scheduling.operations.shapes import NextRunsShape

MOST = 100
FEW = 10


def next_runs(row: Scheduler, count: int = FEW, now: datetime | None = None) -> list[datetime]:
    """The next occurrences in UTC, at most `count` and at most `MOST`. A paused schedule would have them.

    Raises:
        CronError, ZoneError: the schedule or its zone is invalid. The message is a sentence for the user.
    """
    now = now or clock.now()
    if row.date_time is not None:
        return [row.date_time] if row.date_time > now else []
    cron, found = parse(row.schedule), list[datetime]()
    for _number in range(min(count, MOST)):
        try:
            found.append(next_after(cron, row.zone_name, found[-1] if found else now))
        except CronError:
            break  # the schedule has no further occurrence
    return found


def next_runs_shape(row: Scheduler, count: int = FEW, now: datetime | None = None) -> NextRunsShape:
    """The next runs, the schedule in words, and a sentence if they cannot be told."""
    try:
        runs, words, problem = next_runs(row, count, now), in_words(row), ""
    except (CronError, ZoneError) as error:
        runs, words, problem = [], "", visible_text(error, 500)
    return NextRunsShape(
        schedule_id=row.pk, words=words, timezone=row.zone_name, is_active=row.status,
        runs=[run.astimezone(UTC) for run in runs], problem=problem,
    )  # fmt: skip
