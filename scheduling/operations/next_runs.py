"""The next runs of a schedule."""

from __future__ import annotations

from datetime import UTC, datetime

from django.utils import timezone as clock

from scheduling.core.cron import CronError, ZoneError, next_after
from scheduling.core.expected import Expected, expected, first_expected
from scheduling.core.text import visible_text
from scheduling.execution.rule_pauses import runs_left
from scheduling.models import Scheduler
from scheduling.models.own_timing import has_own_timing
from scheduling.models.timetable import timetable_of
from scheduling.operations.schedule_words import in_words
from scheduling.operations.shapes import NextRunsShape, OccurrenceShape

MOST = 100
FEW = 10


def next_runs(row: Scheduler, count: int = FEW, now: datetime | None = None) -> list[datetime]:
    """The next occurrences in UTC, at most `count` and at most `MOST`. A paused schedule would have them.

    They end when the schedule has run as often as it may.

    Raises:
        CronError, ZoneError: the schedule or its zone is invalid. The message is a sentence for the user.
    """
    now, count = now or clock.now(), _at_most(row, count)
    if has_own_timing(row):
        return [one.starts_at for one in next_expected(row, count, now) if one.starts_at is not None]
    if row.date_time is not None:
        return [row.date_time] if row.date_time > now else []
    timetable, found = timetable_of(row.schedule), list[datetime]()
    for _number in range(count):
        try:
            found.append(next_after(timetable, row.zone_name, found[-1] if found else now))
        except CronError:
            break  # the schedule has no further occurrence
    return found


def next_expected(row: Scheduler, count: int = FEW, now: datetime | None = None) -> list[Expected]:
    """What becomes of the next occurrences of a schedule with rules of its own, up to the `count`-th that starts.

    Raises:
        CronError, ZoneError: as `next_runs`.
    """
    now, starts, found = now or clock.now(), 0, list[Expected]()
    own, count = row.assigned(), _at_most(row, count)
    planned = row.next_nominal_at or row.next_run_at if row.status else None
    for one in expected(own, first_expected(own, planned, now)):
        found.append(one)
        starts += one.starts_at is not None
        if starts >= count:
            break
    return found


def _at_most(row: Scheduler, count: int) -> int:
    """How many runs are looked for."""
    left = runs_left(row)
    return min(count, MOST) if left is None else min(count, MOST, left)


def next_runs_shape(row: Scheduler, count: int = FEW, now: datetime | None = None) -> NextRunsShape:
    """The next runs, the schedule in words, and a sentence if they cannot be told."""
    try:
        runs, words, problem = next_runs(row, count, now), in_words(row), ""
        rules = next_expected(row, count, now) if has_own_timing(row) else []
    except (CronError, ZoneError) as error:
        runs, words, problem, rules = [], "", visible_text(error, 500), []
    return NextRunsShape(
        schedule_id=row.pk, words=words, timezone=row.zone_name, is_active=row.status,
        runs=[run.astimezone(UTC) for run in runs],
        occurrences=[
            OccurrenceShape(
                at=one.first, last=one.last, count=one.count, fate=one.fate.value, starts_at=one.starts_at,
                reason=visible_text(one.why, 300),
            )
            for one in rules
        ],
        problem=problem,
    )  # fmt: skip
