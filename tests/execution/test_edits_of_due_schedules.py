"""An edit while no producer runs: what fell due before it has the former times, what follows the new ones."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from django.utils import timezone as clock

from scheduling.core.cron import next_after, parse
from scheduling.core.skip_reasons import kind_of
from scheduling.execution.claim import claim_due
from scheduling.execution.skip_due import skip_due
from scheduling.models import Scheduler, SchedulerExecution
from scheduling.operations.catch_up import plan_of
from scheduling.operations.occurrence_audit import audit_schedules
from scheduling.producer.sweeps import plan_stale
from tests.factories import SchedulerFactory
from tests.hostile import fuzz
from tests.support import NOON, Clock

pytestmark = pytest.mark.django_db

HOUR, MINUTE = timedelta(hours=1), timedelta(minutes=1)
DAILY, HALF_PAST = "0 13 * * *", "30 * * * *"


def rows() -> list[tuple[str, str, int]]:
    """Each execution as (key, state, how many occurrences it counts)."""
    found = SchedulerExecution.objects.order_by("scheduled_at").values_list("execution_key", "state", "missed")
    return [(key.removeprefix("cron-2026-3-10-"), state, missed) for key, state, missed in found]


def edited(row: Scheduler, **columns: object) -> None:
    row = Scheduler.objects.get(pk=row.pk)
    for name, value in columns.items():
        setattr(row, name, value)
    row.save()


def change(row: Scheduler, by_sql: bool, now: datetime, **columns: object) -> None:
    """Change columns by the form, or by plain SQL that a sweep finds at once."""
    if not by_sql:
        edited(row, **columns)
        return
    Scheduler.objects.filter(pk=row.pk).update(**columns)
    plan_stale(now)


def at_noon(at: Clock, schedule: str = DAILY, **columns: object) -> Scheduler:
    at(NOON)
    row: Scheduler = SchedulerFactory(schedule=schedule, timezone="UTC", missed_within_seconds=None, **columns)
    return row


@pytest.mark.parametrize("spread", [None, 60], ids=["plain", "spread"])
@pytest.mark.parametrize("by_sql", [False, True], ids=["form", "sql"])
def test_the_occurrence_that_waits_runs_alone(at: Clock, spread: int | None, by_sql: bool) -> None:
    """13:00 falls due and waits. No instant of the new times was due before the edit at 23:00."""
    row = at_noon(at, spread_seconds=spread)
    at(NOON + 11 * HOUR)
    schedule = "0 13,14,15 * * *"
    change(row, by_sql, NOON + 11 * HOUR, schedule=schedule)
    waiting = plan_of(Scheduler.objects.get(pk=row.pk), NOON + 11 * HOUR + MINUTE)
    assert waiting is not None
    assert (len(waiting.runs), waiting.all_missed) == (1, ())
    claim_due(at(NOON + 11 * HOUR + MINUTE), embedded=True)
    assert rows() == [("13-0", "queued", 0)]
    row.refresh_from_db()
    assert row.next_run_at is not None
    assert row.next_run_at - NOON - 25 * HOUR < MINUTE


def test_what_falls_due_after_the_edit_is_caught_up_with_it(at: Clock) -> None:
    row = at_noon(at, "0 * * * *")
    at(NOON + 3 * HOUR + MINUTE)  # 13:00 and 14:00 are recorded, 15:00 waits
    edited(row, schedule="*/30 * * * *")
    claim_due(at(NOON + 5 * HOUR), embedded=True)  # 15:30, 16:00, 16:30 and 17:00
    assert rows() == [("13-0", "skipped", 2), ("15-0", "skipped", 4), ("17-0", "queued", 0)]


def test_a_second_edit_counts_only_what_was_due(at: Clock) -> None:
    row = at_noon(at)
    for hours in (11, 11.2):
        at(NOON + hours * HOUR)
        edited(row, schedule=HALF_PAST if hours == 11 else "45 * * * *")
    claim_due(at(NOON + 11.3 * HOUR), embedded=True)
    assert rows() == [("13-0", "queued", 0)]


def test_a_pause_after_the_edit_counts_only_what_was_due(at: Clock) -> None:
    row = at_noon(at)
    at(NOON + 11 * HOUR)
    edited(row, schedule=HALF_PAST)
    at(NOON + 11.2 * HOUR)
    edited(row, status=False)
    at(NOON + 13 * HOUR)
    edited(row, status=True)
    claim_due(at(NOON + 13.1 * HOUR), embedded=True)
    assert rows() == [("13-0", "skipped", 3)]  # with 23:30 and 00:30


def test_what_fell_due_before_a_restore_counts_only_what_was_due(at: Clock) -> None:
    row = at_noon(at)
    at(NOON + 11 * HOUR)
    edited(row, schedule=HALF_PAST)
    skip_due(NOON + 12 * HOUR, "it ran before", at(NOON + 12 * HOUR))
    assert rows() == [("13-0", "skipped", 2)]  # with 23:30


@pytest.mark.parametrize("schedule", ["0 * * * *", "0 13-20 * * *"])
def test_plain_sql_leaves_a_row_for_what_the_new_times_do_not_have(at: Clock, schedule: str) -> None:
    """13:00 and 14:00 were due, and no producer ran. The new times have neither of them."""
    row = at_noon(at, schedule)
    Scheduler.objects.filter(pk=row.pk).update(schedule=HALF_PAST)
    plan_stale(at(NOON + 2 * HOUR + MINUTE))
    assert rows() == [("13-0", "skipped", 1), ("14-0", "skipped", 1)]
    assert all(kind_of(reason) for reason in SchedulerExecution.objects.values_list("reason", flat=True))
    claim_due(at(NOON + 2.5 * HOUR), embedded=True)
    assert rows()[2:] == [("14-30", "queued", 0)]


EXPRESSIONS = (
    "* * * * *",
    "*/7 * * * *",
    "0 * * * *",
    "30 13 * * *",
    "15,45 */2 * * *",
    "@every 11m from 2026-01-01T00:00Z",
)


@pytest.mark.long
def test_each_instant_that_was_due_is_counted_once_through_random_edits(at: Clock) -> None:
    """Edits, pauses, claims and hours without a producer. An instant is due if the times of that moment have it."""
    pick = fuzz.generator("edits")
    for _number in range(25):
        SchedulerExecution.objects.all().delete()
        Scheduler.objects.all().delete()
        expression, active, now = pick.choice(EXPRESSIONS), True, NOON
        row = at_noon(
            at, expression, spread_seconds=pick.choice([None, None, 40, 400]),
            missed_runs=pick.choice(["latest", "latest", "none", "all"]),
        )  # fmt: skip
        due, said = set[datetime](), [expression]
        for step in range(12):
            later = now + timedelta(seconds=pick.randint(30, 9_000))
            instant = next_after(parse(expression), "UTC", now)
            while instant <= later:
                due.add(instant)
                instant = next_after(parse(expression), "UTC", instant)
            now = at(later)
            action = (
                pick.choice(["claim", "edit", "edit", "pause"]) if step < 10 else ("resume" if step == 10 else "end")
            )
            said.append(f"{now:%H:%M:%S} {action}")
            if action == "edit":
                expression = pick.choice(EXPRESSIONS)
                said[-1] += f" {expression}"
            elif action != "end":
                active = action == "resume" or (active if action == "claim" else not active)
            if action in ("edit", "pause", "resume"):
                by_sql = pick.random() < 0.5
                said[-1] += f"{' by SQL' if by_sql else ''}, {'active' if active else 'paused'}"
                change(row, by_sql, now, schedule=expression, status=active)
            else:
                claim_due(now, embedded=True)
        settled = next_after(parse(expression), "UTC", now)
        claim_due(at(max(settled, now) + 500 * timedelta(seconds=1)), embedded=True)
        end = Scheduler.objects.get(pk=row.pk)
        first = end.next_nominal_at or end.next_run_at
        assert first is not None
        instant = settled
        while instant < first:
            due.add(instant)
            instant = next_after(parse(expression), "UTC", instant)
        found = SchedulerExecution.objects.values_list("scheduled_at", "missed")
        recorded = [(f"{scheduled:%d %H:%M:%S}", missed) for scheduled, missed in found.order_by("scheduled_at")]
        assert {scheduled for scheduled, _missed in found} <= due, f"{said} {recorded}"
        assert sum(max(missed, 1) for _scheduled, missed in found) == len(due), f"{said} {recorded}"
        faults = [audited.faults for audited in audit_schedules(clock.now())]
        assert faults == [[]], f"{said} {recorded}"
