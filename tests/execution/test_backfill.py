"""A backfill makes one run for each instant of its range that has none, whatever dies meanwhile."""

from __future__ import annotations

import os
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone as clock

from scheduling.core.backfill import Standing
from scheduling.core.occurrences import backfill_key, cron_key
from scheduling.execution import backfill_sweep, publish
from scheduling.execution.claim import claim_due
from scheduling.models import Backfill, Scheduler, SchedulerExecution
from scheduling.operations import backfills
from scheduling.operations.refused import Refused
from scheduling.operations.why import why
from scheduling.producer.sweeps import publish_claimed
from scheduling.testing import drain
from tests.execution.backfills import BROKER, MONDAY, NO_USER, ask, dry_run, made, sweep, sweep_all
from tests.factories import GroupFactory, SchedulerExecutionFactory, SchedulerFactory, due
from tests.producer.recording_broker import RecordingBroker
from tests.support import at_once

pytestmark = pytest.mark.django_db
DAY, HOUR = timedelta(days=1), timedelta(hours=1)
SCHEDULES = int(os.environ.get("TEST_BACKFILL_SCHEDULES", "3"))
DAYS = int(os.environ.get("TEST_BACKFILL_DAYS", "6"))


class Killed(BaseException):
    """Stands for the end of the process."""


@pytest.fixture(autouse=True)
def enough_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine can need more than half a second for one step, so a round of the sweep must not end by time."""
    monkeypatch.setattr(backfill_sweep.SweepLimits, "seconds", 60)


def has_run(row: Scheduler, instant: datetime, **columns: Any) -> SchedulerExecution:
    """The run that the schedule has made by itself."""
    own = {"succeeded": True, "scheduled_at": instant, "execution_key": cron_key(instant), **columns}
    execution: SchedulerExecution = SchedulerExecutionFactory(scheduler=row, **own)
    return execution


def refreshed(row: Backfill) -> Backfill:
    row.refresh_from_db()
    return row


def test_what_the_dry_run_shows_is_made_and_the_same_range_makes_nothing_again() -> None:
    row = SchedulerFactory(schedule="30 2 * * *", timezone="America/New_York", queue="slow")
    has_run(row, MONDAY + timedelta(hours=7, minutes=30))
    shown = dry_run(row, days=90)  # the clocks change on 8 March
    wanted = [at for at, standing, _execution in shown.lines() if standing is Standing.NEW]
    assert (shown.total, shown.new, len(wanted)) == (90, 89, 89)
    assert datetime(2026, 3, 8, 7, 0, tzinfo=UTC) in wanted  # 2:30 does not exist on this day
    first = ask(row, days=90, reason="the depot was closed")
    sweep_all()
    assert made(row) == wanted
    assert (refreshed(first).state, first.total, first.created, first.existing) == ("done", 90, 89, 1)
    run = SchedulerExecution.objects.filter(trigger="backfill").earliest("pk")
    assert (run.execution_key, run.queue, run.state) == (backfill_key(wanted[0]), "slow", "queued")
    assert run.reason == f"Made by backfill {first.pk}, which a command has asked for. the depot was closed"
    again = ask(row, days=90)
    sweep_all()
    assert (refreshed(again).state, again.created, again.existing) == ("done", 0, 90)
    overlapping = ask(row, days=100)
    sweep_all()
    assert (refreshed(overlapping).created, overlapping.existing) == (10, 90)
    assert max(Counter(made(row)).values()) == 1


def test_what_was_skipped_runs_and_what_ran_runs_only_if_asked() -> None:
    row = SchedulerFactory(schedule="0 0 * * *")
    states = ("succeeded", "failed", "cancelled", "running", "discarded")
    for day, state in enumerate(states):
        has_run(row, MONDAY + day * DAY, state=state)
    # An outage is one skipped row with the key of its first occurrence.
    has_run(row, MONDAY + 5 * DAY, state="skipped", missed=2)
    ask(row)
    sweep_all()
    assert made(row) == [MONDAY + 5 * DAY, MONDAY + 6 * DAY]
    counts = dry_run(row, also_ran=True).counts
    assert counts == {Standing.NEW: 5, Standing.MADE: 2}
    ask(row, also_ran=True)
    sweep_all()
    ask(row, also_ran=True)
    sweep_all()
    assert sorted(made(row)) == [MONDAY + day * DAY for day in range(7)]


def test_the_runs_are_made_at_the_rate_and_in_the_order() -> None:
    row = SchedulerFactory(schedule="0 0 * * *")
    ask(row, per_minute=2, newest_first=True)
    assert [sweep(), sweep(), sweep(seconds=29), sweep(seconds=31), sweep(seconds=61)] == [1, 0, 0, 1, 1]
    assert made(row) == [MONDAY + day * DAY for day in (6, 5, 4)]
    # After an hour without a producer, the rest is not made at once.
    assert [sweep(seconds=3600), sweep(seconds=3601), sweep(seconds=3631)] == [1, 0, 1]


def test_what_is_on_record_takes_no_time_of_the_rate() -> None:
    row = SchedulerFactory(schedule="0 * * * *")
    for hour in range(0, 48, 2):
        has_run(row, MONDAY + hour * HOUR)
    one = ask(row, days=2, per_minute=1)
    assert sweep() == 1
    assert (refreshed(one).position, one.existing) == (3, 2)
    assert sweep(seconds=61) == 1


def test_a_schedule_that_runs_alone_stays_alone_unless_it_shall_not() -> None:
    row = SchedulerFactory(schedule="0 0 * * *", overlap="skip")
    one = ask(row)
    assert [sweep(), sweep(seconds=5), sweep(seconds=10)] == [1, 0, 0]
    first = SchedulerExecution.objects.get()
    assert refreshed(one).note == f"It waits until execution {first.pk} is over."
    # The occurrence of the schedule itself is left out meanwhile.
    due(row, clock.now() - timedelta(seconds=1))
    assert claim_due(clock.now(), embedded=True).skipped == 1
    SchedulerExecution.objects.filter(pk=first.pk).update(state="succeeded")
    assert sweep(seconds=20) == 1
    second = SchedulerExecution.objects.filter(trigger="backfill").latest("pk")
    assert refreshed(one).note == f"It waits until execution {second.pk} is over."
    backfills.cancel(NO_USER, one.pk)
    ask(row, obey_overlap=False)
    sweep_all()
    assert len(made(row)) == 7


def test_an_occurrence_is_left_out_while_the_run_of_a_backfill_is_open() -> None:
    """The schedule names an earlier run of its own, which is over."""
    row = SchedulerFactory(schedule="0 0 * * *", overlap="skip")
    now = clock.now()
    due(row, now - timedelta(days=1))
    claim_due(now, embedded=True)
    SchedulerExecution.objects.update(state="succeeded")
    ask(row)
    assert sweep() == 1
    due(row, now - timedelta(seconds=1))
    done = claim_due(now, embedded=True)
    assert (done.claimed, done.skipped) == ([], 1)


def test_it_is_paused_resumed_and_cancelled() -> None:
    row = SchedulerFactory(schedule="0 0 * * *")
    one = ask(row, per_minute=1)
    sweep()
    backfills.pause(NO_USER, one.pk)
    assert sweep(seconds=600) == 0
    with pytest.raises(Refused, match="The backfill is paused"):
        backfills.pause(NO_USER, one.pk)
    backfills.resume(NO_USER, one.pk)
    assert sweep(seconds=600) == 1
    cancelled = backfills.cancel(NO_USER, one.pk)
    assert (cancelled.state, cancelled.note, cancelled.created) == ("cancelled", "Cancelled by a command.", 2)
    assert (sweep(seconds=6_000), len(made(row))) == (0, 2)
    for act in (backfills.cancel, backfills.pause, backfills.resume):
        with pytest.raises(Refused, match="Nothing was changed"):
            act(NO_USER, one.pk)
    # A new request makes the rest.
    ask(row)
    sweep_all()
    assert sorted(made(row)) == [MONDAY + day * DAY for day in range(7)]


def test_one_that_cannot_go_on_stops_and_the_others_go_on() -> None:
    rows = [SchedulerFactory(schedule="0 0 * * *") for _ in range(6)]
    asked = [ask(row) for row in rows]
    rows[0].delete()
    Scheduler.objects.filter(pk=rows[1].pk).update(stay_alive=True)
    Backfill.objects.filter(pk=asked[2].pk).update(instants=[1, "x"])
    Backfill.objects.filter(pk=asked[3].pk).update(instants=[10**15])
    Backfill.objects.filter(pk=asked[4].pk).update(instants=[2**70])
    sweep_all()
    states = [refreshed(one).state for one in asked]
    assert states == ["stopped"] * 5 + ["done"]
    assert [one.note for one in asked[:3]] == [
        "Its schedule was deleted.",
        "Its schedule has become a service. A service has no runs of its instants.",
        "It cannot go on: TypeError: the list of instants is damaged",
    ]
    assert len(made(rows[5])) == 7


def test_an_edit_after_the_request_does_not_change_its_instants() -> None:
    row = SchedulerFactory(schedule="0 0 * * *", handler="tests.typed", params={"since_days": 1})
    ask(row, per_minute=1)
    sweep()
    row.refresh_from_db()
    row.schedule, row.params = "30 5 * * *", {"since_days": 2}
    row.save()
    Backfill.objects.update(per_minute=6_000)
    sweep_all()
    assert made(row) == [MONDAY + day * DAY for day in range(7)]
    assert SchedulerExecution.objects.filter(trigger="backfill").latest("pk").params == {"since_days": 2}


def test_the_occurrence_that_is_due_now_is_left_to_the_producers() -> None:
    row = SchedulerFactory(schedule="* * * * *")
    now = clock.now()
    minute = now.replace(second=0, microsecond=0)
    due(row, minute - timedelta(minutes=1))
    shown = dry_run(row, since=minute - timedelta(minutes=5), days=(now - minute).total_seconds() / 86_400 + 5 / 1_440)
    assert shown.instants == [minute - timedelta(minutes=number) for number in (5, 4, 3, 2)]
    assert shown.waits == minute - timedelta(minutes=1)


def test_the_handler_sees_the_past_instant_and_that_it_is_a_backfill() -> None:
    row = SchedulerFactory(schedule="0 0 * * *", handler="tests.tell_occasion")
    ask(row, days=1)
    (outcome,) = drain()
    assert (outcome.state, outcome.output.strip()) == ("succeeded", f"backfill {MONDAY.isoformat()}")
    assert SchedulerExecution.objects.get().should_start_at > MONDAY + DAY


def test_the_question_whether_it_ran_is_answered_by_the_backfill() -> None:
    row = SchedulerFactory(schedule="0 0 * * *")
    has_run(row, MONDAY, state="skipped", reason="No producer was running.")
    assert why(NO_USER, row, "2026-01-05 00:00", clock.now())[0].text == "It did not run. No producer was running."
    ask(row, days=2)
    sweep_all()
    for day in ("2026-01-05", "2026-01-06"):
        (said,) = why(NO_USER, row, f"{day} 00:00", clock.now())
        assert said.answer == "recorded"
        assert said.text.startswith("A backfill has made up for it. It has not started. Made by backfill ")


def test_the_backfill_of_a_group_belongs_to_the_group() -> None:
    group = GroupFactory()
    row = SchedulerFactory(schedule="0 0 * * *", group=group)
    one = ask(row)
    sweep_all()
    assert one.group == group
    assert set(SchedulerExecution.objects.values_list("group", flat=True)) == {group.pk}


@contextmanager
def killed_at(number: int) -> Iterator[list[str]]:
    """The process ends before its write with this number. Yields the writes so far."""
    writes: list[str] = []

    def count(execute: Callable[..., Any], sql: str, params: Any, many: bool, context: Any) -> Any:
        if sql.split(None, 1)[0].upper() in ("INSERT", "UPDATE", "DELETE"):
            if len(writes) == number:
                raise Killed
            writes.append(sql)
        return execute(sql, params, many, context)

    with connection.execute_wrapper(count):
        yield writes


def dies_before_the_publish(broker: RecordingBroker, turn: int) -> int:
    """The process ends between the commit and the publish, so its rows stay claimed. Returns how often it has."""

    def dies(*_values: Any) -> set[int]:
        raise Killed

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(publish, "send", dies)
        try:
            sweep(broker, turn)
        except Killed:
            return 1
    return 0


def kill_again_and_again(broker: RecordingBroker, ask_again: Callable[[], object]) -> int:
    """Kill a process at each of its writes, until no backfill goes on. Returns the number of kills."""
    kills = number = 0
    for turn in range(2_000):
        if turn == 20:
            ask_again()
        try:
            with killed_at(number):
                sweep(broker, turn)
            number = 0  # it had fewer writes: begin again with the first one
        except Killed:
            kills, number = kills + 1, number + 1
        if turn % 5 == 0:
            kills += dies_before_the_publish(broker, turn)
            publish_claimed(broker, clock.now() + DAY)
        SchedulerExecution.objects.exclude(state="claimed").update(state="succeeded")
        if not Backfill.objects.filter(state="running").exists():
            return kills
    raise AssertionError("a backfill does not end")


@pytest.mark.parametrize("overlap", ["allow", "skip"])
def test_killed_at_every_write_and_asked_again_each_instant_runs_once(
    overlap: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process ends before each of its writes, and between the commit and the publish. Another one goes on."""
    monkeypatch.setattr(backfill_sweep.SweepLimits, "instants_per_step", 4)
    rows = [
        SchedulerFactory(schedule=f"{7 * number % 60} {number % 24} * * *", timezone="Europe/Madrid", overlap=overlap)
        for number in range(SCHEDULES)
    ]
    wanted = {row.pk: list(dry_run(row, days=DAYS).instants) for row in rows}
    broker = RecordingBroker()
    ask(*rows, days=DAYS)
    assert kill_again_and_again(broker, lambda: ask(*rows, days=DAYS)) > 5
    ask(*rows, days=DAYS)
    sweep_all(broker)
    publish_claimed(broker, clock.now() + DAY)
    for row in rows:
        assert sorted(made(row)) == wanted[row.pk]
    published = Counter(message.execution_id for message in broker.published)
    assert set(published) == set(SchedulerExecution.objects.values_list("pk", flat=True))
    assert not SchedulerExecution.objects.filter(state="claimed").exists()
    totals = Backfill.objects.values_list("state", "total", "position", "created", "existing")
    for state, total, position, created, existing in totals:
        assert (state, position, created + existing) == ("done", total, total)


@pytest.mark.django_db(transaction=True)
def test_producers_and_operators_at_once_make_each_run_once() -> None:
    for overlap in ("allow", "skip"):
        rows = [SchedulerFactory(schedule="0 */4 * * *", overlap=overlap) for _ in range(2)]
        has_run(rows[0], MONDAY)
        key = uuid.uuid4()
        # Two operators ask for the same, and one of them has clicked twice.
        at_once([lambda row=row, key=key: ask(row, days=1, key=key) for row in (rows[0], rows[0])])
        at_once([lambda row=row: ask(row, days=1) for row in (rows[0], rows[1], rows[1])])
        assert Backfill.objects.filter(request=key).count() == 1

        def producer(turn: int) -> None:
            for second in range(4):
                backfill_sweep.sweep(BROKER, clock.now() + timedelta(seconds=20 * turn + 3 * second))

        for turn in range(60):
            at_once([lambda turn=turn: producer(turn)] * 3)
            open_runs = Counter(SchedulerExecution.objects.filter(state="queued").values_list("scheduler", flat=True))
            if overlap == "skip":
                assert max(open_runs.values(), default=0) <= 1
            SchedulerExecution.objects.filter(state="queued").update(state="succeeded")
            if not Backfill.objects.filter(state="running").exists():
                break
        assert sorted(made(rows[0])) == [MONDAY + hour * HOUR for hour in range(4, 24, 4)]
        assert sorted(made(rows[1])) == [MONDAY + hour * HOUR for hour in range(0, 24, 4)]
        for one in Backfill.objects.all():
            assert (one.state, one.created + one.existing) == ("done", 6)


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ({"stay_alive": True}, "It is a service"),
        ({"once": True}, "It runs once, at one date and time"),
        ({"schedule": "* * * * *"}, r"The range has 10,080 occurrences .* at most 1,000 \(CRON_BACKFILL_MOST\)"),
    ],
)
def test_what_cannot_be_backfilled_is_refused(columns: dict[str, Any], said: str) -> None:
    with pytest.raises(Refused, match=said):
        dry_run(SchedulerFactory(**columns))
    assert not Backfill.objects.exists()


def test_ten_years_of_minutes_are_refused_at_once() -> None:
    row = SchedulerFactory(schedule="* * * * *")
    with pytest.raises(Refused, match=r"The range has 5,2.* occurrences"):
        dry_run(row, since=datetime(2015, 1, 1, tzinfo=UTC), days=3_652)


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"days": -1}, "until"),
        ({"days": 36_500}, "until"),
        ({"per_minute": 0}, "per_minute"),
        ({"per_minute": 10**9}, "per_minute"),
        ({"reason": "x" * 501}, "reason"),
    ],
)
def test_bad_values_are_refused_by_name(options: dict[str, Any], field: str) -> None:
    with pytest.raises(Refused) as error:
        dry_run(SchedulerFactory(), **options)
    assert [problem.field for problem in error.value.problems] == [field]
