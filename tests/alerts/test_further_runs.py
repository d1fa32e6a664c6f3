"""The newest runs of a schedule may hide what a rule asks for. Then the rule looks further back."""

from __future__ import annotations

from datetime import timedelta
from random import Random

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from scheduling.alerts import further_runs
from scheduling.alerts.evaluation import evaluate
from scheduling.alerts.look import Look
from scheduling.alerts.memory import Memory
from scheduling.alerts.rules.deadlines import _progress, _runs
from scheduling.alerts.rules.results import _in_a_row
from scheduling.alerts.runs import recent_runs
from scheduling.alerts.wanted import Wanted
from scheduling.core.alert_rules import RuleKind
from scheduling.models import Alert, AlertRule, Scheduler, SchedulerExecution
from scheduling.models.last_runs import failures_in_a_row
from tests.alerts.scripted import START, Script, run_of
from tests.factories import GroupFactory, SchedulerFactory, due
from tests.hostile.fuzz import choose_seed

pytestmark = [pytest.mark.django_db, pytest.mark.database]

NINE = START.replace(hour=9)
DAY = timedelta(days=1)
MINUTE = timedelta(minutes=1)
STATES = ("queued", "running", "retrying", "succeeded", "failed", "discarded", "cancelled", "skipped")


@pytest.fixture
def daily() -> Scheduler:
    """Return a schedule that is due each day at nine, and tomorrow next."""
    row: Scheduler = SchedulerFactory(schedule="0 9 * * *", description="Import orders", timezone="UTC")
    Scheduler.objects.filter(pk=row.pk).update(planned_at=START - 90 * DAY)
    return due(row, NINE + DAY)


def deadline(row: Scheduler) -> Script:
    return Script(RuleKind.NOT_FINISHED, schedule=row, at="12:01")


@pytest.mark.parametrize("number", [7, 8, 40])
def test_a_backfill_hides_no_run_that_was_in_time(daily: Scheduler, number: int) -> None:
    run_of(daily, "succeeded", NINE - DAY)
    run_of(daily, "succeeded", NINE)
    script = deadline(daily)
    script.stays_silent()
    for day in range(number):
        state = ("succeeded", "failed")[day % 2]
        run_of(daily, state, NINE - (2 + number - day) * DAY, trigger="backfill", executed_at=START)
    script.stays_silent()
    script.stays_silent()


def test_a_backfill_of_the_occurrence_itself_finishes_its_work(daily: Scheduler) -> None:
    run_of(daily, "failed", NINE)
    for number in range(20):
        state = "succeeded" if number == 10 else "failed"
        run_of(daily, state, NINE - (10 - number) * DAY, trigger="backfill", executed_at=START)
    run_of(daily, "succeeded", NINE - DAY, trigger="backfill", executed_at=START)
    script = deadline(daily)
    script.stays_silent()
    script.stays_silent()


def test_a_backfill_of_yesterday_hides_no_run_of_today(daily: Scheduler) -> None:
    run_of(daily, "failed", NINE - DAY)
    run_of(daily, "succeeded", NINE - DAY / 2, trigger="manual")
    run_of(daily, "succeeded", NINE)
    run_of(daily, "succeeded", NINE - DAY, trigger="backfill", executed_at=START)
    for number in range(30):
        run_of(daily, "failed", NINE + number * MINUTE, trigger="manual")
    script = deadline(daily)
    script.stays_silent()
    script.stays_silent()


def test_failures_by_hand_hide_no_run_that_was_in_time(daily: Scheduler) -> None:
    run_of(daily, "succeeded", NINE - DAY)
    run_of(daily, "succeeded", NINE)
    for number in range(30):
        run_of(daily, "failed", NINE + number * MINUTE, trigger="manual")
    script = deadline(daily)
    script.stays_silent()
    script.stays_silent()


def test_what_is_cancelled_later_hides_no_run_that_is_late(daily: Scheduler) -> None:
    run_of(daily, "succeeded", NINE - DAY)
    run = run_of(daily, "running", NINE)
    for number in range(30):
        run_of(daily, "cancelled", NINE + number * MINUTE, trigger="manual")
    script = deadline(daily)
    script.now += 2 * MINUTE
    assert script.begins().execution == run.pk
    SchedulerExecution.objects.filter(pk=run.pk).update(state="succeeded", finished_at=script.now)
    script.ends()


@pytest.mark.parametrize("due", [timedelta(), 10 * MINUTE])
def test_what_a_pause_has_left_out_stays_silent_behind_many_runs(daily: Scheduler, due: timedelta) -> None:
    """The skipped execution may count several occurrences. Then it is due at the first of them."""
    run_of(daily, "succeeded", NINE - DAY)
    said = "Paused by ann from 2026-11-25 08:00 to 09:30 UTC. 1 occurrence did not run."
    run_of(daily, "skipped", NINE - due, reason=said, executed_at=NINE + 30 * MINUTE, missed=2)
    for number in range(30):
        run_of(daily, "failed", NINE + (40 + number) * MINUTE, trigger="manual")
    script = deadline(daily)
    script.stays_silent()
    script.stays_silent()


@pytest.mark.parametrize("named", [False, True])
@pytest.mark.parametrize("number", [3, 6, 10])
@pytest.mark.parametrize("beside", [1, 5, 20])
def test_failures_in_a_row_lie_between_others(daily: Scheduler, number: int, beside: int, named: bool) -> None:
    script = Script(RuleKind.FAILED_IN_A_ROW, number=number, schedule=daily if named else None)

    def fail(count: int) -> SchedulerExecution:
        for _number in range(count):
            run = run_of(daily, "failed", script.now)
            for _beside in range(beside):
                run_of(daily, "skipped", script.now, reason=f"Left out, because execution {run.pk} was not over.")
        return run

    run_of(daily, "failed", script.ago(hours=9))
    run_of(daily, "succeeded", script.ago(hours=8))
    fail(number - 1)
    script.stays_silent()
    run = fail(1)
    script.look(times=1)
    assert script.told["start"] == 1, "new runs are seen at once"
    script.stays_silent()
    alert = Alert.objects.get()
    assert (alert.execution, f" {number}." in alert.seen) == (run.pk, True), alert.seen
    for _turn in range(3):
        fail(1)
        script.stays_silent()
    run_of(daily, "succeeded", script.now)
    script.ends()


def test_failures_that_are_discarded_at_once_are_told(daily: Scheduler) -> None:
    script = Script(RuleKind.FAILED_IN_A_ROW)
    for state in ("discarded", "discarded", "failed"):
        run_of(daily, state, script.now)
    script.begins()


@pytest.mark.parametrize("failures", [4, 6])
def test_the_failures_of_other_groups_hide_none(daily: Scheduler, failures: int) -> None:
    """With 6 failures of each of 100 schedules, more wait in the inbox than are looked at."""
    own, other = GroupFactory(), GroupFactory()
    Scheduler.objects.filter(pk=daily.pk).update(group=own)
    for _number in range(3):
        run_of(daily, "failed", START, group=own)
    noisy = [SchedulerFactory(timezone="UTC", group=other) for _number in range(100)]
    run = run_of(noisy[0], "failed", START, group=other)
    columns = {
        field.attname: getattr(run, field.attname) for field in SchedulerExecution._meta.concrete_fields
        if not field.primary_key
    }  # fmt: skip
    SchedulerExecution.objects.bulk_create([
        SchedulerExecution(**{**columns, "scheduler_id": row.pk, "execution_key": f"k{number}"})
        for row in noisy for number in range(failures)
    ])  # fmt: skip
    alert = Script(RuleKind.FAILED_IN_A_ROW, group=own).begins()
    assert alert.schedule_id == daily.pk


def test_many_runs_that_wait_cost_no_query_each() -> None:
    counts = []
    for number in range(60):
        row = due(SchedulerFactory(timezone="UTC", schedule="0 9 * * *"), NINE + DAY)
        Scheduler.objects.filter(pk=row.pk).update(planned_at=START - 90 * DAY)
        AlertRule.objects.create(name=f"rule {number}", kind="not_finished", at="12:30", schedule=row)
        run_of(row, "queued", NINE)
        for _skip in range(6):
            run_of(row, "skipped", NINE - 10 * MINUTE, reason="x", trigger="manual")
        if number in (9, 59):
            memory = Memory()
            for turn in range(3):
                with CaptureQueriesContext(connection) as queries:
                    evaluate(Look(START + timedelta(seconds=10 * turn), memory=memory))
            counts.append(sum(one["sql"].startswith("SELECT") for one in queries))
    assert counts[0] == counts[1], counts


def test_random_histories_say_the_same_as_all_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is found is what a look at all runs of a schedule finds."""
    seed = choose_seed()
    pick = Random(seed)
    rules = [Wanted(1, "rule", RuleKind.FAILED_IN_A_ROW, "warning", number=4)]
    monkeypatch.setattr(further_runs, "NEWEST_RUNS", 60)
    for turn in range(60):
        row = SchedulerFactory(schedule="0 9 * * *", timezone="UTC")
        states = pick.choices(
            STATES, weights=[pick.choice([0, 1, 9]) or 0.01 for _state in STATES], k=pick.randrange(50)
        )
        at = NINE - 2 * DAY
        for state in states:
            at += timedelta(minutes=pick.choice([1, 60, 300]))
            trigger = pick.choice(["cron", "manual", "backfill"])
            run_of(row, state, at if trigger != "backfill" else NINE - pick.randrange(2, 9) * DAY, trigger=trigger)
        look = Look(START, memory=Memory(), wanted=rules)
        every = recent_runs([row.pk], 60)[row.pk]
        found = _in_a_row([row.pk], 4, look).get(row.pk)
        number = failures_in_a_row(every)
        assert min(found.number if found else 0, 4) == min(number, 4), (seed, turn, states)
        progress = _progress(NINE, _runs([(row.pk, NINE)], look)[row.pk], look)
        assert progress == _progress(NINE, every, look), (seed, turn, states)
