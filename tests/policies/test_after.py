"""An occurrence waits until the schedule before it has succeeded, or until its latest time. It says for what."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from itertools import pairwise
from typing import Any

import pytest
from django.contrib.auth.models import Group
from django.core.exceptions import ValidationError
from django.db import IntegrityError, connection, transaction
from django.db.models import RestrictedError

from scheduling.broker.database import DatabaseBroker
from scheduling.core.outcome import Skipped
from scheduling.execution import after_runs, transitions
from scheduling.execution.after_runs import LATE, UNUSABLE, look
from scheduling.execution.cancel import cancel
from scheduling.execution.claim import claim_due
from scheduling.execution.mending import Mending
from scheduling.execution.run_now import run_now
from scheduling.inbox.actions import republish
from scheduling.models import Scheduler, SchedulerExecution, UncountedSkip
from scheduling.models.exclusions import cache
from scheduling.models.plan import PlanState
from scheduling.policies.after import Judge
from scheduling.processes.set_aside import fail_row
from scheduling.producer.after_waits import look_at_waiting
from scheduling.producer.sweeps import plan_stale, publish_claimed
from tests.factories import CalendarFactory, ReportFactory, SchedulerExecutionFactory, due
from tests.policies.after_world import FAILURE, HOUR, MINUTE, World, edge, last, schedule, words
from tests.producer.recording_broker import RecordingBroker
from tests.support import NOON

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def no_calendars() -> Iterator[None]:
    """Forget the calendars of other tests: SQLite uses their primary keys again."""
    cache.clear()
    yield
    cache.clear()


def states(row: Scheduler) -> list[str]:
    return list(SchedulerExecution.objects.filter(scheduler=row).order_by("pk").values_list("state", flat=True))


def test_an_occurrence_waits_until_the_run_before_it_has_succeeded() -> None:
    world, (first, second) = World(), edge()
    world.claim(first, second)
    waiting = last(second)
    assert (waiting.state, waiting.waits_for, waiting.published_at, waiting.attempt) == ("blocked", first.pk, None, 0)
    assert waiting.execution_key == "cron-2026-3-10-12-0"
    name = f"“Load data” (schedule {first.pk}): its run of 2026-03-10 12:00 UTC"
    assert waiting.reason == f"Waits for {name} waits to start as execution {last(first).pk}."
    world.start()
    world.sweep(1)
    assert words(second) == f"Waits for {name} is running as execution {last(first).pk}."
    world.end(last(first))
    released = last(second)
    assert (released.state, released.waits_for, released.reason, released.wake_at) == ("queued", None, "", world.now)
    world.start()
    world.end(released)
    assert states(second) == ["succeeded"]


def test_the_predecessor_may_be_claimed_after_it() -> None:
    world, (first, second) = World(), edge()
    world.claim(second)
    assert words(second).endswith("its run of 2026-03-10 12:00 UTC is due and has not been claimed yet.")
    world.claim(first)
    world.start()
    world.end(last(first))
    assert states(second) == ["queued"]


def test_without_an_occurrence_of_the_predecessor_there_is_nothing_to_wait_for() -> None:
    world, first = World(), schedule(schedule="0 13 * * *")  # due later on the same day
    second = schedule(after=first)
    world.claim(second)
    assert states(second) == ["queued"]


def test_times_that_the_predecessor_did_not_have_yet_do_not_count() -> None:
    world, (first, second) = World(), edge()
    Scheduler.objects.filter(pk=first.pk).update(planned_at=NOON + MINUTE)
    world.claim(second)
    assert states(second) == ["queued"]


@pytest.mark.parametrize(
    ("on_excluded", "succeeded", "state"),
    [("skip", False, "queued"), ("skip", True, "queued"), ("hold", True, "blocked")],
)
def test_what_a_calendar_leaves_out_is_not_due_before_it_is_on_record(
    on_excluded: str, succeeded: bool, state: str
) -> None:
    # It is put on record with the next run: of a daily schedule, on the next day that the calendar does not exclude.
    world = World()
    calendar = CalendarFactory(entries="2026-03-10 09:30-24:00 stocktaking")
    first = schedule(calendar=calendar, on_excluded=on_excluded, schedule="0 9-12 * * *" if succeeded else "0 12 * * *")
    second = schedule(after=first)
    if succeeded:
        SchedulerExecutionFactory(scheduler=first, state="succeeded", scheduled_at=NOON - 3 * HOUR)
    world.claim(second)
    assert states(second) == [state]


def test_the_first_run_after_several_excluded_ones_is_awaited() -> None:
    # The row that counts the excluded ones is written together with this run.
    world = World(NOON + MINUTE)
    first = schedule(calendar=CalendarFactory(entries="2026-03-10 10:30-12:00 stocktaking"), schedule="*/30 * * * *")
    second = schedule(after=first, schedule="*/30 * * * *")
    Scheduler.objects.filter(pk=first.pk).update(next_run_at=NOON, next_nominal_at=NOON - 1.5 * HOUR)
    claim_due(world.now, embedded=True)
    assert [row.missed for row in SchedulerExecution.objects.filter(scheduler=first, state="skipped")] == [3]
    due(second, NOON)
    look(claim_due(world.now, embedded=True).blocked, world.broker, world.now)
    assert words(second).endswith(f"its run of 2026-03-10 12:00 UTC waits to start as execution {last(first).pk}.")


def test_an_occurrence_that_is_not_on_record_is_awaited_after_excluded_ones() -> None:
    # It waits for its time to start, because its schedule is spread. A row that was written since counts earlier ones.
    world = World(NOON + 2 * MINUTE)
    first = schedule(schedule="* * * * *", spread_seconds=86_400)
    second = schedule(after=first)
    SchedulerExecutionFactory(
        scheduler=first, state="skipped", reason="Excluded 2 occurrences", missed=2, scheduled_at=NOON - 3 * MINUTE,
        executed_at=world.now,
    )  # fmt: skip
    Scheduler.objects.filter(pk=first.pk).update(next_run_at=NOON + HOUR, next_nominal_at=NOON - MINUTE)
    due(second, NOON)
    look(claim_due(world.now, embedded=True).blocked, world.broker, world.now)
    assert words(second).endswith("its run of 2026-03-10 12:00 UTC is due and has not been claimed yet.")


def test_what_is_due_before_an_exclusion_is_awaited() -> None:
    world = World()
    first = schedule(calendar=CalendarFactory(entries="2026-03-10 09:30-24:00 stocktaking"))
    second = schedule(after=first)
    world.claim(second)
    assert words(second).endswith("its run of 2026-03-10 09:00 UTC is due and has not been claimed yet.")


def test_a_failure_may_be_republished_or_run_by_hand() -> None:
    world, (first, second) = World(), edge()
    third = schedule(after=first)
    world.claim(first, second, third)
    world.start()
    world.end(last(first), FAILURE)
    world.sweep(1)
    assert words(second).endswith(f"has failed as execution {last(first).pk}.")
    republish([last(first).pk], world.broker, "ann")
    SchedulerExecution.objects.filter(scheduler=first).update(wake_at=world.now)
    world.start()
    world.sweep(1)
    assert words(second).endswith(f"is running as execution {last(first).pk}.")
    world.end(last(first))
    assert states(second) == states(third) == ["queued"]


def test_a_later_run_by_hand_counts() -> None:
    world, (first, second) = World(), edge()
    world.claim(first, second)
    cancel(last(first).pk, "ann", world.now)
    world.sweep(1)
    assert words(second).endswith(f"was cancelled as execution {last(first).pk}.")
    run_now(first, world.broker)
    SchedulerExecution.objects.filter(pk=last(first).pk).update(scheduled_at=world.now, wake_at=world.now)
    world.start()
    world.end(last(first))
    assert states(second) == ["queued"]


def test_a_predecessor_whose_handler_has_nothing_to_do_is_done() -> None:
    world, (first, second) = World(), edge()
    world.claim(first, second)
    world.start()
    world.end(last(first), Skipped("Left out by its handler: there is nothing to do."))
    assert states(second) == ["queued"]


def test_a_predecessor_that_was_left_out_is_done_when_the_run_before_it_is() -> None:
    world, (first, second) = World(), edge()
    Scheduler.objects.filter(pk=first.pk).update(overlap="skip")
    world.claim(first)
    world.start()
    earlier = last(first)
    world.now += HOUR
    world.claim(first, second)
    assert states(first) == ["running", "skipped"]
    assert words(second).endswith(f"was skipped, as execution {last(first).pk} says.")
    world.end(earlier)
    assert states(second) == ["queued"]


def test_one_row_that_counts_several_left_out_occurrences_is_the_awaited_one() -> None:
    world, (first, second) = World(), edge()
    Scheduler.objects.filter(pk=first.pk).update(overlap="skip")
    world.claim(first)
    world.start()
    earlier = last(first)
    for _ in range(2):
        world.now += HOUR
        world.claim(first)
    assert states(first) == ["running", "skipped"]
    world.claim(second)
    assert words(second).endswith(f"14:00 UTC was skipped, as execution {last(first).pk} says.")
    world.end(earlier)
    assert states(second) == ["queued"]


def test_an_occurrence_waits_for_a_paused_predecessor() -> None:
    world, (first, second) = World(), edge()
    Scheduler.objects.filter(pk=first.pk).update(status=False, planned_status=False, paused_at=NOON - MINUTE)
    world.claim(second)
    assert words(second).endswith("fell into a pause.")


def test_the_span_since_its_own_occurrence_before_reaches_into_the_day_before() -> None:
    for span, wanted in (("day", "queued"), ("previous", "blocked")):
        world, first = World(), schedule(schedule="0 23 * * *")
        second = schedule(schedule="0 12 * * *", after=first, after_span=span)
        world.claim(second)
        assert states(second) == [wanted]
        SchedulerExecution.objects.all().delete()
        Scheduler.objects.filter(pk=second.pk).update(next_run_at=None)


@pytest.mark.parametrize("late", ["skip", "run", "fail"])
def test_the_wait_ends_at_its_latest_time(late: str) -> None:
    world, (first, second) = World(), edge(after_within_seconds=3_600, after_late=late)
    world.claim(first, second)
    world.start()
    world.end(last(first), FAILURE)
    for _ in range(3):
        world.sweep(19)
    assert states(second) == ["blocked"]
    assert last(second).wake_at < NOON + HOUR
    world.sweep(2.9)
    assert last(second).wake_at == NOON + HOUR
    world.now += MINUTE
    assert look_at_waiting(world.broker, world.now) == 1
    row = last(second)
    why = (
        f"“Load data” (schedule {first.pk}): its run of 2026-03-10 12:00 UTC has failed as execution {last(first).pk}."
    )
    assert row.waits_for is None
    if late == "run":
        assert (row.state, row.reason) == ("queued", f"Started at its latest time. It waited for {why}")
        return
    assert (row.finished_at, row.wake_at) == (world.now, None)
    text = f"Not started in time: until 2026-03-10 13:00 UTC it waited for {why}"
    if late == "skip":
        assert (row.state, row.reason, row.missed) == ("skipped", text, 1)
        assert list(UncountedSkip.objects.filter(schedule=second.pk).values_list("reason", "number")) == [
            ("predecessor", 1)
        ]
        return
    assert (row.state, row.error_class, row.error_message, row.attempt) == ("failed", LATE, text, 0)
    republish([row.pk], world.broker, "ann")
    assert states(second) == ["queued"]  # an operator has asked for it, so it does not wait again


def test_a_wait_is_not_lost_if_the_consumer_dies_after_the_success() -> None:
    """The success is committed. The consumer is killed before it lets the occurrence go."""
    world, (first, second) = World(), edge()
    world.claim(first, second)
    world.start()
    world.writer._successors.let_go = lambda now: None  # type: ignore[method-assign]
    world.end(last(first))
    world.restart()
    assert states(second) == ["blocked"]
    world.sweep()
    assert states(second) == ["queued"]


def test_a_success_while_a_process_looks_is_not_overlooked(monkeypatch: pytest.MonkeyPatch) -> None:
    """The look has read that the run goes on. The run succeeds before the look writes that it must wait."""
    world, (first, second) = World(), edge()
    world.claim(first, second)
    world.sweep(1)
    read = Judge.verdict

    def slow(judge: Judge, *args: Any) -> Any:
        found = read(judge, *args)
        SchedulerExecution.objects.filter(scheduler=first).update(state="succeeded")
        after_runs.wake([first.pk], world.now + MINUTE)
        return found

    monkeypatch.setattr(Judge, "verdict", slow)
    assert after_runs.look([last(second).pk], world.broker, world.now) == 0
    monkeypatch.undo()
    assert last(second).wake_at == world.now + MINUTE
    world.sweep(1)
    assert states(second) == ["queued"]


def test_no_message_starts_a_waiting_occurrence() -> None:
    world, (first, second) = World(), edge()
    world.claim(first, second)
    row = last(second)
    assert not transitions.start(row.pk, 1, row.execution_key, "consumer", world.now, world.now + HOUR)
    world.start()
    assert states(second) == ["blocked"]


def test_a_wait_is_not_lost_if_the_consumer_does_not_know_of_it() -> None:
    world, first = World(), schedule()
    second = schedule()
    world.claim(first)
    world.start()
    assert world.writer._successors._of({first.pk}) == set()
    second.after = first
    second.save()
    world.claim(second)
    world.end(last(first))
    assert states(second) == ["blocked"]
    world.sweep(1)
    assert states(second) == ["queued"]


def test_a_success_for_which_none_waits_costs_one_query_in_two_seconds() -> None:
    from django.test.utils import CaptureQueriesContext

    world, first = World(), schedule()
    found = world.writer._successors
    with CaptureQueriesContext(connection) as asked:
        assert [found._of({first.pk}) for _ in range(100)] == [set()] * 100
    assert len(asked) == 1
    with CaptureQueriesContext(connection) as asked:
        found.note([], world.now)
        found.let_go(world.now)
    assert len(asked) == 0


def test_an_error_in_what_waits_does_not_stand_in_the_way_of_the_success(monkeypatch: pytest.MonkeyPatch) -> None:
    world, (first, second) = World(), edge()
    world.claim(first, second)
    world.start()

    def broken(*_args: Any) -> list[int]:
        raise ValueError("a column of what waits")

    monkeypatch.setattr("scheduling.consumer.successors.wake", broken)
    world.end(last(first))
    assert states(first) == ["succeeded"]
    monkeypatch.undo()
    world.sweep(1)
    assert states(second) == ["queued"]


@pytest.mark.parametrize(
    "door", ["cancel", "edit", "delete", "fail"]
)  # fmt: skip
def test_a_waiting_occurrence_can_be_ended(door: str) -> None:
    world, (first, second) = World(), edge()
    world.claim(first, second)
    row = last(second)
    if door == "cancel":
        assert cancel(row.pk, "ann", world.now) == "cancelled"
        wanted = "cancelled"
    elif door == "edit":
        second.after = None
        second.save()
        wanted = "queued"
    elif door == "delete":
        second.delete()
        wanted = "cancelled"
    else:
        fail_row(row.pk, ValueError("unusable"), world.now)
        wanted = "failed"
    world.sweep(1)
    row.refresh_from_db()
    assert row.state == wanted


def test_no_sweep_publishes_a_waiting_occurrence_and_its_release_does() -> None:
    world, (first, second) = World(), edge()
    broker = RecordingBroker()
    for row in (first, second):
        due(row, NOON)
    done = claim_due(NOON, embedded=False)
    assert [row.scheduler_id for row in done.claimed] == [first.pk]
    after_runs.look(done.blocked, broker, NOON)
    publish_claimed(broker, NOON + HOUR)
    assert [message.scheduler_id for message in broker.published] == [first.pk]
    SchedulerExecution.objects.filter(scheduler=first).update(state="succeeded")
    assert look_at_waiting(broker, NOON + HOUR) == 1
    assert last(second).state == "claimed"
    assert world.now == NOON


def test_a_claim_costs_as_many_queries_with_a_predecessor_as_without() -> None:
    from django.test.utils import CaptureQueriesContext

    first = schedule()
    counts = []
    for after in (None, first):
        rows = [schedule(after=after) for _ in range(3)]
        for row in rows:
            due(row, NOON)
        with CaptureQueriesContext(connection) as asked:
            claim_due(NOON, embedded=True)
        counts.append(len(asked))
    assert counts[0] == counts[1]


def test_many_occurrences_that_wait_for_one_schedule_are_let_go_together() -> None:
    from django.test.utils import CaptureQueriesContext

    world, first = World(), schedule()
    rows = [schedule(after=first) for _ in range(12)]
    world.claim(first, *rows)
    SchedulerExecution.objects.filter(scheduler=first).update(state="succeeded")
    keys = list(SchedulerExecution.objects.filter(state="blocked").values_list("pk", flat=True))
    with CaptureQueriesContext(connection) as asked:
        assert after_runs.look(keys, world.broker, world.now) == 12
    selects = [query for query in asked if query["sql"].startswith("SELECT")]
    assert len(selects) <= 6, [query["sql"][:100] for query in selects]
    assert {states(row)[0] for row in rows} == {"queued"}


# --- overlap, run now


def test_a_waiting_occurrence_is_open_for_the_overlap_policy() -> None:
    world, (first, second) = World(), edge(overlap="skip")
    world.claim(first, second)
    waiting = last(second)
    assert run_now(second, world.broker).state == "skipped"
    world.now += HOUR
    world.claim(second)
    assert states(second) == ["blocked", "skipped", "skipped"]
    assert words(second) == f"Left out, because execution {waiting.pk} was not over."
    world.start()
    world.end(last(first))
    waiting.refresh_from_db()
    assert waiting.state == "queued"


def test_run_now_does_not_wait() -> None:
    world, (first, second) = World(), edge()
    world.claim(first)
    assert run_now(second, world.broker).state == "queued"


# --- refused predecessors


def refused(row: Scheduler, field: str = "after") -> str:
    with pytest.raises(ValidationError) as found:
        row.full_clean()
    return " ".join(found.value.message_dict[field])


def test_a_circle_is_refused_and_named() -> None:
    a, b, c = schedule(description="a"), schedule(description="b"), schedule(description="c")
    a.after = a
    assert refused(a).endswith(f"in a circle: “a” (schedule {a.pk}) → “a” (schedule {a.pk}).")
    b.after = a
    b.save()
    c.after = b
    c.save()
    a.after = c
    names = [f"“{row.description}” (schedule {row.pk})" for row in (a, c, b, a)]
    assert refused(a) == f"The schedules would wait for each other in a circle: {' → '.join(names)}."
    with pytest.raises(ValidationError, match="circle"):
        a.save()


def test_the_sentence_about_a_circle_names_no_schedule_of_another_group() -> None:
    a, b = schedule(description="a"), schedule(description="secret", group=Group.objects.create(name="other"))
    Scheduler.objects.filter(pk=b.pk).update(after=a)
    a.after = b
    assert "secret" not in refused(a)
    assert "a schedule of another group" in refused(a)


def test_a_chain_that_is_too_long_is_refused() -> None:
    rows = [schedule() for _ in range(22)]
    for first, second in pairwise(rows[:-1]):
        Scheduler.objects.filter(pk=second.pk).update(after=first)
    rows[-1].after = rows[-2]
    assert refused(rows[-1]) == "More than 20 schedules would wait for each other in a row."
    rows[-1].after = rows[5]
    rows[-1].full_clean()


def test_a_service_waits_for_none_and_none_waits_for_it() -> None:
    first, second = edge()
    second.stay_alive = True
    assert refused(second) == "A service never ends, so it waits for no other schedule."
    second.stay_alive = False
    second.save()
    first.stay_alive = True
    assert refused(first, "stay_alive").startswith("Other schedules wait for this one.")
    service = schedule(stay_alive=True)
    second.after = service
    assert refused(second) == "It would wait for a service, which never ends."


@pytest.mark.parametrize(
    ("name", "value"),
    [("after_span", "week"), ("after_late", "wait"), ("after_within_seconds", 59), ("after_within_seconds", 604_801)],
)
def test_a_value_out_of_bounds_is_refused(name: str, value: object) -> None:
    _first, second = edge()
    setattr(second, name, value)
    assert refused(second, name)
    with pytest.raises(ValidationError):
        second.save()


def test_a_predecessor_cannot_be_deleted_while_others_wait_for_it() -> None:
    first, second = edge(group=Group.objects.create(name="other"))
    with pytest.raises(RestrictedError, match="Other schedules wait for this one") as found, transaction.atomic():
        first.delete()
    assert "Report" not in " ".join(map(str, found.value.restricted_objects))
    Scheduler.objects.filter(pk__in=[first.pk, second.pk]).delete()  # both together
    assert not Scheduler.objects.filter(pk__in=[first.pk, second.pk]).exists()


# --- plain SQL


def circle() -> tuple[Scheduler, Scheduler]:
    first, second = edge()
    Scheduler.objects.filter(pk=first.pk).update(after=second)
    return first, second


def test_a_circle_in_the_database_sets_both_schedules_aside() -> None:
    world, (first, second) = World(), circle()
    world.claim(first, second)
    for row in (first, second):
        row.refresh_from_db()
        assert row.plan_state == PlanState.SET_ASIDE
        assert row.plan_error.startswith("The schedules would wait for each other in a circle: “")
        failed = last(row)
        assert (failed.state, failed.error_class) == ("failed", UNUSABLE)
        assert failed.error_message == row.plan_error
    assert Mending().turn(world.now) == 0
    Scheduler.objects.filter(pk=first.pk).update(after=None)
    assert Mending().turn(world.now) == 2


def test_the_planner_refuses_a_circle() -> None:
    _first, second = circle()
    Scheduler.objects.filter(pk=second.pk).update(schedule="5 * * * *")
    plan_stale(NOON)
    second.refresh_from_db()
    assert "circle" in second.plan_error


@pytest.mark.skipif("not __import__('django').db.connection.vendor == 'sqlite'", reason="the database refuses it")
def test_a_predecessor_that_plain_sql_has_deleted_sets_the_schedule_aside() -> None:
    world, (first, second) = World(), edge(after_late="run")
    world.claim(first, second)
    assert states(second) == ["blocked"]
    connection.check_constraints = lambda *args: None  # type: ignore[method-assign]  # of the test case
    try:
        with connection.constraint_checks_disabled(), connection.cursor() as cursor:
            cursor.execute("PRAGMA defer_foreign_keys = ON")
            cursor.execute("DELETE FROM scheduling_scheduler WHERE id = %s", [first.pk])
        world.sweep(1)
        second.refresh_from_db()
        assert second.plan_error == f"It waits for schedule {first.pk}, which does not exist."
        assert (states(second), last(second).error_class) == (["failed"], UNUSABLE)
    finally:
        SchedulerExecution.objects.all().delete()
        Scheduler.objects.filter(pk=second.pk).update(after=None)
        del connection.check_constraints  # type: ignore[method-assign]


def _delete(pk: int) -> None:
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM scheduling_scheduler WHERE id = %s", [pk])
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE" if connection.vendor == "postgresql" else "SELECT 1")


def test_other_databases_refuse_to_delete_a_predecessor() -> None:
    first, _second = edge()
    if connection.vendor == "sqlite":
        return
    with pytest.raises(IntegrityError), transaction.atomic():
        _delete(first.pk)


@pytest.mark.parametrize(("column", "value"), [("schedule", "no times"), ("timezone", "Nowhere/Atlantis")])
def test_a_predecessor_whose_times_cannot_be_read_is_waited_for(column: str, value: str) -> None:
    world, (first, second) = World(), edge()
    Scheduler.objects.filter(pk=first.pk).update(**{column: value, "next_run_at": None})
    world.claim(second)
    assert "cannot be judged: " in words(second)
    run_now(Scheduler.objects.get(pk=first.pk), world.broker)
    SchedulerExecution.objects.filter(scheduler=first).update(wake_at=world.now, scheduled_at=world.now)
    world.start()
    world.end(last(first))
    assert states(second) == ["queued"]


@pytest.mark.parametrize(("column", "value"), [("scheduled_at", "garbage"), ("state", "odd"), ("executed_at", 5)])
def test_an_execution_of_the_predecessor_that_cannot_be_read_lets_it_wait(column: str, value: object) -> None:
    if connection.vendor != "sqlite" and column != "state":
        return  # other databases store no such value
    world, (first, second) = World(), edge(after_within_seconds=3_600)
    world.claim(first, second)
    with connection.cursor() as cursor:
        cursor.execute(
            f"UPDATE scheduling_schedulerexecution SET {column} = %s WHERE scheduler_id = %s", [value, first.pk]
        )
    other = schedule(after=schedule(schedule="0 13 * * *"))
    due(other, NOON)
    world.now += MINUTE
    look_at_waiting(world.broker, world.now)
    assert "its executions cannot be read" in words(second)
    world.now += HOUR
    look_at_waiting(world.broker, world.now)
    assert states(second) == ["skipped"]


@pytest.mark.parametrize("column", ["after_span", "after_late", "after_within_seconds"])
def test_a_value_that_plain_sql_has_written_sets_the_schedule_aside(column: str) -> None:
    world, (first, second) = World(), edge()
    Scheduler.objects.filter(pk=second.pk).update(**{column: 1 if column == "after_within_seconds" else "odd"})
    world.claim(first, second)
    second.refresh_from_db()
    assert second.plan_error
    assert last(second).error_class == UNUSABLE


# --- groups


def test_the_reason_names_no_schedule_of_another_group() -> None:
    secret = Group.objects.create(name="secret")
    world, first = World(), schedule(description="Payroll", group=secret)
    second, own = schedule(after=first), schedule(after=first, group=secret)
    world.claim(first, second, own)
    assert words(second) == "Waits for a schedule of another group."
    assert "Payroll" in words(own)
    world.sweep(13 * 60)
    assert "Payroll" not in words(second)
    assert words(second).endswith("it waited for a schedule of another group.")


def test_a_report_may_wait_for_a_worker() -> None:
    world, first = World(), schedule()
    second = schedule(worker=None, report=ReportFactory(), after=first)
    world.claim(first, second)
    assert states(second) == ["blocked"]
    assert DatabaseBroker.embedded
    assert timedelta(0) < last(second).wake_at - world.now <= MINUTE
