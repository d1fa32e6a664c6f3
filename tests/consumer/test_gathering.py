"""A batch gathers in the memory of its consumer: when it is called, and when the queue is looked at for it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import pytest
from django.utils import timezone as clock

from scheduling.broker import Delivery
from scheduling.broker.database import DatabaseBroker
from scheduling.conf import Conf
from scheduling.consumer.batch import MOST_CHARACTERS, Batch, Shared
from scheduling.consumer.batch_calls import next_call
from scheduling.consumer.gathering import Gathering
from scheduling.consumer.output import OutputBuffer
from scheduling.consumer.running import Running
from scheduling.consumer.supervisor import Supervisor
from scheduling.core.batch import Batching
from scheduling.core.messages import TaskMessage
from scheduling.core.origin import Origin
from scheduling.core.outcome import Crashed, Outcome, Succeeded
from scheduling.handlers.run_config import RunConfig
from scheduling.processes.shutdown import ShutdownRequest

RULES = Batching(3, 1.0)


def running(pk: int = 1, **columns: Any) -> Running:
    """A run that has started."""
    message = TaskMessage(type="worker", id=1, execution_id=pk, **columns)
    return Running(Delivery(message), RunConfig("tests.batch", batch=RULES), OutputBuffer(1000), clock.now(), "one")


def gathering(*runs: Running, now: float = 10.0) -> Gathering:
    """These runs, which gather since `now`."""
    found = Gathering()
    for run in runs:
        found.add(run, RULES, now)
    return found


def test_a_batch_is_due_when_it_is_full_or_its_wait_is_over_or_the_consumer_stops() -> None:
    found = gathering(running(1), running(2))
    assert (found.due(10.9, 1), len(found)) == ([], 1)
    assert [len(batch.members) for batch in gathering(running(1), running(2)).due(11.0, 1)] == [2]
    assert [len(batch.members) for batch in gathering(running(1), running(2)).due(10.0, None)] == [2]
    found.add(running(3), RULES, 10.5)
    assert (len(found.due(10.5, 0)), len(found)) == (0, 1)
    assert [len(batch.members) for batch in found.due(10.5, 1)] == [3]
    assert len(found) == 0


def test_a_fourth_run_begins_another_batch_and_so_does_one_after_very_long_params() -> None:
    found = gathering(*(running(pk) for pk in range(1, 5)))
    assert sorted(len(batch.members) for batch in found.due(10.0, None)) == [1, 3]
    long = gathering(running(1, params={"text": "x" * MOST_CHARACTERS}), running(2))
    assert [len(batch.members) for batch in long.due(10.0, None)] == [1, 1]


def test_the_runs_of_a_batch_have_one_group_target_and_queue() -> None:
    runs = [running(1), running(2, group_id=5), running(3, group_id=6), running(4)]
    assert [len(batch.members) for batch in gathering(*runs).due(10.0, None)] == [2, 1, 1]


def test_the_run_with_the_lowest_id_leads() -> None:
    (batch,) = gathering(running(8), running(7), running(9)).due(10.0, 1)
    assert batch.link is None
    assert batch.close().execution_id == 7
    assert [run.execution_id for run in batch.members] == [7, 8, 9]
    assert batch.link == (7, 1, 3)


def ends(answer: dict[str, Any] | None, verdict: Outcome | None = None) -> list[str]:
    """The outcomes of three runs whose leader has this answer."""
    batch = Batch(Shared.of(running().delivery.message, running().config, "main"), RULES, 0.0)
    for pk in (1, 2, 3):
        batch.add(running(pk))
    leader = batch.close()
    leader.answer, leader.verdict = answer, verdict
    batch.share_end()
    return [run.judge().name for run in batch.members]


FAILED = {"outcome": "failed", "message": "no"}


@pytest.mark.parametrize(
    ("answer", "outcomes"),
    [
        ({"outcome": "succeeded"}, ["succeeded"] * 3),
        ({"outcome": "failed"}, ["failed"] * 3),
        (None, ["crashed"] * 3),
        ({"outcome": "succeeded", "members": [None, FAILED, None]}, ["succeeded", "failed", "succeeded"]),
        ({"outcome": "failed", "members": [None, {"outcome": "succeeded"}, None]}, ["failed", "succeeded", "failed"]),
        ({"outcome": "succeeded", "members": [FAILED]}, ["succeeded"] * 3),
        ({"outcome": "succeeded", "members": "xyz"}, ["succeeded"] * 3),
        ({"outcome": "succeeded", "members": [5, [], {}]}, ["succeeded", "succeeded", "failed"]),
    ],
)
def test_each_run_ends_by_its_own_entry_or_as_the_call(answer: dict[str, Any] | None, outcomes: list[str]) -> None:
    assert ends(answer) == outcomes


def test_a_verdict_of_the_consumer_is_that_of_each_run() -> None:
    assert ends(None, Crashed(lost=True)) == ["crashed"] * 3
    assert ends({"outcome": "succeeded"}, None) == [Succeeded.name] * 3


class Recorder(DatabaseBroker):
    """A transport that records what is taken."""

    is_ready = False

    def __init__(self) -> None:
        super().__init__()
        self.taken: list[tuple[Sequence[str], int, bool]] = []

    def ready(self, queues: Sequence[str], now: datetime) -> bool:
        return self.is_ready

    def take(self, queues: Sequence[str], limit: int, now: datetime, wanted: Any = None) -> list[Delivery]:
        self.taken.append((queues, limit, wanted(Origin("worker", 2, None, None))))
        return []


@pytest.mark.django_db
def test_an_empty_queue_is_not_searched_and_one_with_runs_is_searched_for_the_room_of_the_batch(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Supervisor, "_may_start", property(lambda self: not self.draining))
    broker = Recorder()
    with ShutdownRequest() as stop:
        supervisor = Supervisor(broker, Conf(), stop)
        slots = supervisor._slots
        slots.gathering.add(running(), RULES, 1e12)
        supervisor._fill_batches(1.0)
        assert broker.taken == []
        broker.is_ready = True
        supervisor._fill_batches(1.05)
        assert broker.taken == [], "the next look is not due yet"
        supervisor._fill_batches(2.5)
        assert broker.taken == [(["main"], 2, False)]
        assert (slots.free, slots.busy, [run.execution_id for run in slots.owned]) == (0, 1, [1])
        assert next_call(slots, takes=True) is not None
        slots.running.append(running(9))
        assert next_call(slots, takes=True) is None, "no slot is free, so no turn would do anything"
