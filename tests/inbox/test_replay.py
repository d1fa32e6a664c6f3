"""If the canary fails, the replay republishes no other execution. Otherwise it republishes each execution once."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import AnonymousUser
from django.utils import timezone as clock

from scheduling.broker.database import DatabaseBroker
from scheduling.core.messages import TaskMessage
from scheduling.core.outcome import Crashed, Failed, Interrupted, Succeeded
from scheduling.core.retry import RetryPolicy
from scheduling.execution.cancel import cancel
from scheduling.execution.retention import prune
from scheduling.inbox import actions as inbox_actions
from scheduling.inbox import replay, replay_sweep
from scheduling.models import Replay, ReplayChunk, SchedulerExecution
from scheduling.producer.sweeps import sweep
from scheduling.signals import executions_replayed
from tests.contract.desk import Desk
from tests.factories import AttemptFactory, ManualExecutionFactory, SchedulerFactory, UserFactory
from tests.support import at_once

pytestmark = pytest.mark.django_db
BROKER = DatabaseBroker()
ERROR = Failed("builtins.RuntimeError", "still <no> route")
NEVER = RetryPolicy(max_retries=0)
ONCE = RetryPolicy(max_retries=1, delay_ms=1000)


@pytest.fixture(autouse=True)
def enough_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine can need more than half a second for one step, so a round of the sweep must not end by time."""
    monkeypatch.setattr(replay_sweep.SweepLimits, "seconds", 60)


def failures(count: int, **columns: Any) -> list[SchedulerExecution]:
    values = {"state": "failed", "wake_at": None, "attempt": 4, "error_class": "E", "finished_at": clock.now()}
    return ManualExecutionFactory.bulk(count, **{**values, **columns})


def begin(rows: Sequence[SchedulerExecution], broker: Any = BROKER, size: int = 500, **options: Any) -> Replay:
    pairs = [(row.pk, 4) for row in rows]
    chunks = [pairs[place : place + size] for place in range(0, len(pairs), size)]
    user = options.pop("user", None) or UserFactory()
    made = replay.start(uuid.uuid4(), chunks, broker, user, "these", **options)
    assert made is not None
    return made


def refreshed(row: Replay) -> Replay:
    row.refresh_from_db()
    return row


def states(rows: Sequence[SchedulerExecution]) -> list[str]:
    found = dict(SchedulerExecution.objects.values_list("pk", "state"))
    return [found[row.pk] for row in rows]


def run_canary(outcome: Any, policy: RetryPolicy = NEVER) -> None:
    Desk(BROKER).run(outcome, policy)


def test_the_other_executions_follow_after_the_canarys_success() -> None:
    rows = failures(5)
    made = begin(rows, user=UserFactory(username="ann"), size=2)
    assert (made.state, made.canary, made.total, made.sent) == ("waiting", rows[0].pk, 5, 1)
    assert states(rows) == ["queued", *["failed"] * 4]
    for _ in range(3):
        sweep(BROKER, clock.now())
    assert states(rows) == ["queued", *["failed"] * 4]
    run_canary(Succeeded())
    assert sweep(BROKER, clock.now()).replayed == 4
    assert states(rows) == ["succeeded", *["queued"] * 4]
    assert (refreshed(made).state, made.sent, made.skipped) == ("done", 5, 0)
    assert made.finished_at is not None
    canary, other = SchedulerExecution.objects.order_by("pk")[:2]
    assert other.reason == f"Republished by ann in replay {made.pk}, after its canary {canary.pk} succeeded."
    assert (other.attempt, other.retry_base) == (4, 4)
    # Each execution has a log entry of the operator who started the replay.
    assert LogEntry.objects.filter(user__username="ann", change_message=f"republish: replay {made.pk}").count() == 5
    assert sweep(BROKER, clock.now()).replayed == 0


def test_a_failed_canary_stops_the_replay_and_changes_no_other_execution() -> None:
    rows = failures(4)
    before = list(SchedulerExecution.objects.filter(pk__gt=rows[0].pk).order_by("pk").values())
    made = begin(rows)
    run_canary(ERROR)
    for _ in range(3):
        sweep(BROKER, clock.now())
    assert refreshed(made).state == "stopped"
    assert made.reason == "The canary failed: builtins.RuntimeError: still <no> route"
    assert list(SchedulerExecution.objects.filter(pk__gt=rows[0].pk).order_by("pk").values()) == before
    assert LogEntry.objects.count() == 1


def test_a_replay_waits_for_a_retry_of_the_canary() -> None:
    rows = failures(3)
    made = begin(rows)
    run_canary(ERROR, ONCE)
    sweep(BROKER, clock.now())
    assert (refreshed(made).state, states(rows)[0]) == ("waiting", "retrying")
    SchedulerExecution.objects.filter(pk=rows[0].pk).update(wake_at=clock.now())
    run_canary(Succeeded(), ONCE)
    sweep(BROKER, clock.now())
    assert refreshed(made).state == "done"


def test_a_replay_waits_for_an_interrupted_or_crashed_canary() -> None:
    rows = failures(2)
    made = begin(rows)
    run_canary(Interrupted())
    sweep(BROKER, clock.now())
    assert refreshed(made).state == "waiting"
    run_canary(Crashed(lost=True), ONCE)
    sweep(BROKER, clock.now())
    assert refreshed(made).state == "waiting"
    run_canary(Succeeded())
    sweep(BROKER, clock.now())
    assert refreshed(made).state == "done"


def test_canary_failure_counts_although_it_was_republished() -> None:
    rows = failures(3)
    made = begin(rows)
    run_canary(ERROR)
    inbox_actions.republish([rows[0].pk], BROKER, "bob")  # before a sweep sees the failure
    run_canary(Succeeded())
    sweep(BROKER, clock.now())
    assert refreshed(made).state == "stopped"
    assert states(rows) == ["succeeded", "failed", "failed"]


@pytest.mark.parametrize(("action", "reason"), [("cancel", "cancelled"), ("discard", "failed"), ("delete", "gone")])
def test_a_canary_that_never_succeeds_stops_the_replay(action: str, reason: str) -> None:
    rows = failures(3)
    made = begin(rows)
    if action == "cancel":
        cancel(rows[0].pk, "bob")
    elif action == "discard":
        run_canary(ERROR)
        inbox_actions.discard([rows[0].pk], "bob", "known")
    else:
        rows[0].delete()
    sweep(BROKER, clock.now())
    assert refreshed(made).state == "stopped"
    assert reason in made.reason
    assert states(rows[1:]) == ["failed"] * 2


def test_executions_that_left_the_inbox_meanwhile_are_skipped() -> None:
    rows = failures(6)
    made = begin(rows)
    inbox_actions.discard([rows[1].pk], "bob", "known")
    inbox_actions.republish([rows[2].pk], BROKER, "bob")
    # The operator chose the failure of attempt 4. Since then, attempt 5 has failed; this failure was not chosen.
    SchedulerExecution.objects.filter(pk=rows[3].pk).update(attempt=5)
    Desk(BROKER).run(Succeeded(), NEVER)
    sweep(BROKER, clock.now())
    assert refreshed(made).state == "done"
    assert (made.sent, made.skipped) == (3, 3)
    assert states(rows) == ["succeeded", "discarded", "queued", "failed", "queued", "queued"]


def test_canary_is_the_next_execution_when_the_first_is_gone_or_unreadable() -> None:
    rows = failures(4)
    inbox_actions.discard([rows[0].pk], "bob", "known")
    SchedulerExecution.objects.filter(pk=rows[1].pk).update(type="", params={"body": "no json"})
    made = begin(rows)
    assert made.canary == rows[2].pk
    run_canary(Succeeded())
    sweep(BROKER, clock.now())
    assert (refreshed(made).sent, made.skipped, made.state) == (2, 2, "done")


def test_a_replay_without_executions_stops_with_a_reason() -> None:
    rows = failures(2)
    inbox_actions.discard([row.pk for row in rows], "bob", "known")
    made = begin(rows)
    assert made.state == "stopped"
    assert "had left the inbox" in made.reason


def test_a_replay_of_schedules_that_run_alone_says_why_nothing_was_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    """The failures of a schedule are refused together: one question for each of many would hold up the page."""
    asked = list[int]()
    requeue = inbox_actions.requeue_in_transaction

    def counting(attempts: dict[int, int], *rest: Any) -> Any:
        asked.extend(attempts)
        return requeue(attempts, *rest)

    monkeypatch.setattr(inbox_actions, "requeue_in_transaction", counting)
    busy, free = SchedulerFactory(overlap="skip"), SchedulerFactory(overlap="skip")
    rows = failures(5, scheduler=busy)
    ManualExecutionFactory(scheduler=busy, state="queued")
    made = begin(rows)
    assert (made.state, made.reason) == ("stopped", replay.NOT_OVER)
    assert asked == [rows[0].pk]
    other = failures(1, scheduler=free)
    assert begin([*rows, *other]).canary == other[0].pk
    assert states([*rows, *other]) == ["failed"] * 5 + ["queued"]


def test_a_second_click_starts_no_second_replay() -> None:
    (row, other), key, user = failures(2), uuid.uuid4(), UserFactory()
    assert replay.start(key, [[(row.pk, 4)]], BROKER, user, "one") is not None
    assert replay.start(key, [[(other.pk, 4)]], BROKER, user, "one") is None
    assert states([row, other]) == ["queued", "failed"]
    assert Replay.objects.count() == 1


def test_a_stop_leaves_the_others_failed() -> None:
    rows = failures(3)
    made = begin(rows)
    assert replay.stop(made.pk, "Stopped by bob.")
    assert not replay.stop(made.pk, "again")
    run_canary(Succeeded())
    sweep(BROKER, clock.now())
    assert (refreshed(made).state, made.reason) == ("stopped", "Stopped by bob.")
    assert states(rows) == ["succeeded", "failed", "failed"]


def test_spread_replay_sends_one_by_one_and_stop_keeps_the_rest() -> None:
    rows, now = failures(6), clock.now()
    made = begin(rows, minutes=50, now=now)
    run_canary(Succeeded())
    sent = []
    for minutes in (0, 9, 10, 19, 20, 21):
        replay_sweep.sweep(BROKER, now + timedelta(minutes=minutes, seconds=1))
        sent.append(refreshed(made).sent)
    assert sent == [1, 1, 2, 2, 3, 3]
    assert states(rows) == ["succeeded", "queued", "queued", "failed", "failed", "failed"]
    replay.stop(made.pk, "Stopped by bob.")
    replay_sweep.sweep(BROKER, now + timedelta(hours=9))
    assert states(rows)[3:] == ["failed"] * 3


def test_a_replay_killed_during_its_collection_sends_nothing() -> None:
    rows = failures(2)
    key, user = uuid.uuid4(), UserFactory()

    def cut() -> Any:
        yield [(rows[0].pk, 4)]
        raise KeyboardInterrupt  # as if the process were killed

    with pytest.raises(KeyboardInterrupt):
        replay.start(key, cut(), BROKER, user, "these")
    made = Replay.objects.get()
    sweep(BROKER, clock.now())
    assert refreshed(made).state == "collecting"
    sweep(BROKER, clock.now() + timedelta(minutes=11))
    assert refreshed(made).state == "stopped"
    assert states(rows) == ["failed"] * 2


class RemoteBroker(DatabaseBroker):
    """A transport outside the database. With `killed`, `publish` acts as if the process were killed."""

    embedded = False

    def __init__(self, killed: bool = False) -> None:
        super().__init__()
        self.killed, self.sent = killed, list[int]()

    def publish(self, messages: Sequence[TaskMessage], queue: str = "main") -> set[int]:
        """Record and confirm the messages, or raise KeyboardInterrupt."""
        if self.killed:
            raise KeyboardInterrupt
        found = {message.execution_id or 0 for message in messages}
        self.sent += sorted(found)
        return found

    def ready(self, queue: str, now: Any) -> bool:
        """Return false. The tests do not need this method."""
        return False


def test_after_a_kill_before_the_publish_each_execution_is_sent_once() -> None:
    rows, now = failures(3), clock.now()
    with pytest.raises(KeyboardInterrupt):
        begin(rows, RemoteBroker(killed=True))
    made, other = Replay.objects.get(), RemoteBroker()
    assert (made.state, states(rows)) == ("waiting", ["claimed", "failed", "failed"])
    sweep(other, now + timedelta(seconds=12))
    assert other.sent == [rows[0].pk]
    SchedulerExecution.objects.filter(pk=rows[0].pk).update(state="succeeded")
    with pytest.raises(KeyboardInterrupt):
        sweep(RemoteBroker(killed=True), now + timedelta(seconds=14))
    assert (refreshed(made).state, states(rows)) == ("done", ["succeeded", "claimed", "claimed"])
    sweep(other, clock.now() + timedelta(seconds=30))
    assert other.sent == [row.pk for row in rows]


def test_a_kill_inside_a_step_undoes_the_step(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = failures(3)
    made = begin(rows)
    run_canary(Succeeded())
    real = inbox_actions.requeue_failed

    def killed_at_second(pk: int, *arguments: Any, **options: Any) -> bool:
        if pk == rows[2].pk:
            raise KeyboardInterrupt
        return real(pk, *arguments, **options)

    monkeypatch.setattr(inbox_actions, "requeue_failed", killed_at_second)
    with pytest.raises(KeyboardInterrupt):
        sweep(BROKER, clock.now())
    assert (refreshed(made).position, states(rows)[1:]) == (0, ["failed", "failed"])
    monkeypatch.undo()
    sweep(BROKER, clock.now())
    assert (refreshed(made).state, states(rows)[1:]) == ("done", ["queued", "queued"])


@pytest.mark.django_db(transaction=True)
def test_several_producers_send_each_execution_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replay_sweep.SweepLimits, "executions_per_step", 7)
    rows = failures(60)
    made = begin(rows, size=25)
    run_canary(Succeeded())
    brokers = [RemoteBroker() for _ in range(4)]

    def produce(broker: RemoteBroker) -> None:
        for _ in range(50):
            replay_sweep.sweep(broker, clock.now())

    at_once([partial(produce, broker) for broker in brokers])
    assert (refreshed(made).state, made.sent, made.skipped) == ("done", 60, 0)
    assert sorted(pk for broker in brokers for pk in broker.sent) == [row.pk for row in rows[1:]]
    assert LogEntry.objects.count() == 60


def test_a_damaged_replay_stops_and_the_others_go_on() -> None:
    rows = failures(4)
    damaged, intact = begin(rows[:2]), begin(rows[2:])
    ReplayChunk.objects.filter(replay=damaged).update(items="x")
    for _ in range(2):
        run_canary(Succeeded())
    sweep(BROKER, clock.now())
    assert (refreshed(damaged).state, refreshed(intact).state) == ("stopped", "done")
    assert "cannot be read" in damaged.reason
    assert states(rows) == ["succeeded", "failed", "succeeded", "queued"]


@pytest.mark.parametrize("error", [TypeError, LookupError, RuntimeError])
def test_a_receiver_that_raises_delays_only_its_replay(
    error: type[Exception], caplog: pytest.LogCaptureFixture
) -> None:
    rows = failures(4)
    first, second = begin(rows[:2]), begin(rows[2:])
    for _ in range(2):
        run_canary(Succeeded())

    def refuse(replay: Replay, **_kwargs: Any) -> None:
        if replay.pk == first.pk:
            raise error("no audit log")

    executions_replayed.connect(refuse)
    try:
        sweep(BROKER, clock.now())
    finally:
        executions_replayed.disconnect(refuse)
    assert (refreshed(first).state, refreshed(second).state) == ("released", "done")
    assert first.sent == 1
    assert states(rows) == ["succeeded", "failed", "succeeded", "queued"]
    assert "tried again in the next round" in caplog.text
    sweep(BROKER, clock.now())
    assert (refreshed(first).state, states(rows)[1]) == ("done", "queued")


@pytest.mark.parametrize(
    "items", [[[10**30, 4]], [[-1, 4]], [[1, -1]], [[1, 10**30]], [["x", 4]], [[1]], [None], {"a": 1}]
)
def test_an_invalid_selection_stops_only_its_replay(items: Any) -> None:
    damaged, intact = begin(failures(2)), begin(failures(2))
    ReplayChunk.objects.filter(replay=damaged).update(items=items)
    Replay.objects.filter(pk=damaged.pk).update(position=0)
    for _ in range(2):
        run_canary(Succeeded())
    sweep(BROKER, clock.now())
    assert (refreshed(damaged).state, refreshed(intact).state) == ("stopped", "done")
    assert "cannot be read" in damaged.reason


def test_waiting_canaries_do_not_delay_other_replays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replay_sweep.SweepLimits, "replays_per_round", 3)
    for _ in range(4):
        begin(failures(2))
    SchedulerExecution.objects.filter(state="queued").update(wake_at=clock.now() + timedelta(hours=1))
    made = begin(failures(3))
    run_canary(Succeeded())
    for _ in range(100):
        if sweep(BROKER, clock.now()).replayed:
            break
    assert refreshed(made).state == "done"


def test_slow_replays_do_not_delay_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replay_sweep.SweepLimits, "replays_per_round", 3)
    for _ in range(4):
        begin(failures(9), minutes=1440)
        run_canary(Succeeded())
        sweep(BROKER, clock.now())  # this sends one execution; the next one follows hours later
    SchedulerExecution.objects.filter(state="queued").update(wake_at=clock.now() + timedelta(hours=1))
    made = begin(failures(3))
    run_canary(Succeeded())
    sweep(BROKER, clock.now())
    assert refreshed(made).state == "done"


def test_the_deletion_of_the_operators_account_does_not_stop_a_replay() -> None:
    user = UserFactory()
    rows = failures(3)
    made = begin(rows, user=user)
    run_canary(Succeeded())
    user.delete()
    sweep(BROKER, clock.now())
    assert refreshed(made).state == "done"
    assert made.requested_by == user.username


def test_replay_can_be_started_without_an_account() -> None:
    made = replay.start(uuid.uuid4(), [[(failures(1)[0].pk, 4)]], BROKER, AnonymousUser(), "one")
    assert made is not None
    assert made.user_id is None


def test_retention_removes_only_replays_that_ended() -> None:
    old, open_ = begin(failures(2)), begin(failures(2))
    replay.stop(old.pk, "Stopped.", clock.now() - timedelta(days=40))
    assert prune(clock.now(), 30, dry_run=True).replays == 1
    assert prune(clock.now(), 30).replays == 1
    assert [row.pk for row in Replay.objects.all()] == [open_.pk]
    assert ReplayChunk.objects.count() == 1


def test_failures_before_the_replay_do_not_count() -> None:
    rows = failures(2)
    AttemptFactory(execution=rows[0], number=4)  # this attempt failed for good before the replay
    made = begin(rows)
    sweep(BROKER, clock.now())
    assert refreshed(made).state == "waiting"
    run_canary(Succeeded())
    sweep(BROKER, clock.now())
    assert refreshed(made).state == "done"


def test_a_stop_during_the_collection_is_final() -> None:
    rows = failures(2)

    def chosen() -> Any:
        yield [(rows[0].pk, 4)]
        replay.stop(Replay.objects.get().pk, "Stopped by bob.")

    made = replay.start(uuid.uuid4(), chosen(), BROKER, UserFactory(), "these")
    assert made is not None
    assert (made.state, made.reason) == ("stopped", "Stopped by bob.")
    assert states(rows) == ["failed"] * 2


def test_executions_sent_by_another_producer_are_not_sent_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """If a database cannot lock rows, another producer can change the replay between a read and a write."""
    rows = failures(3)
    made = begin(rows)
    run_canary(Succeeded())
    real = replay_sweep._items

    def raced(row: Replay, count: int) -> list[tuple[int, int]]:
        Replay.objects.filter(pk=row.pk).update(position=3, state="done", sent=3)
        return real(row, count)

    monkeypatch.setattr(replay_sweep, "_items", raced)
    sweep(BROKER, clock.now())
    assert (refreshed(made).sent, states(rows)) == (3, ["succeeded", "failed", "failed"])
