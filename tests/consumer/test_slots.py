"""The consumer watches a child's output pipe until the pipe is closed. It ignores an answer for another attempt."""

from __future__ import annotations

import os
import selectors
import signal
import socket
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from django.utils import timezone as clock

from scheduling.consumer.forked_child import NARROW_PIPE_BYTES, PIPE_BYTES, Child
from scheduling.consumer.framing import pack
from scheduling.consumer.output import OutputBuffer
from scheduling.consumer.running import Running
from scheduling.consumer.slots import REST_SECONDS, Slots
from scheduling.core.messages import TaskMessage
from scheduling.handlers.run_config import RunConfig


class FakeChild:
    """A child without a process. A test writes to the child's output pipe and to its channel."""

    def __init__(self) -> None:
        self.selector = selectors.DefaultSelector()
        self.slots = Slots(1, self.selector, 10_000)
        self.channel, self.child_end = socket.socketpair()
        read, self.write = os.pipe()
        os.set_blocking(read, False)
        self.child = Child(1, self.channel, read)
        self.slots.pool.all[1] = self.child
        self.selector.register(read, selectors.EVENT_READ, lambda: self.slots._on_output(self.child))

    def round(self, *, drained_first: bool = False) -> int:
        """Handle the events that are ready, and return their number.

        If `drained_first` is true, the output pipe is emptied before its event is handled.
        """
        events = self.selector.select(0)
        if drained_first:
            while self.child.read_output():
                pass
        for key, _ in events:
            key.data()
        return len(events)

    def close(self) -> None:
        """Close every file descriptor."""
        self.selector.close()
        self.channel.close()
        self.child_end.close()
        for descriptor in (self.child.output, self.write):
            with suppress(OSError):
                os.close(descriptor)


@pytest.fixture
def fake() -> Iterator[FakeChild]:
    """Provide a child without a process."""
    made = FakeChild()
    yield made
    made.close()


def test_the_output_is_still_watched_after_an_answer_has_emptied_the_pipe(fake: FakeChild) -> None:
    os.write(fake.write, b"last words of the first run\n")
    assert fake.round(drained_first=True) == 1
    os.write(fake.write, b"first words of the second run\n")
    assert fake.round() == 1  # if the pipe were not watched, it would fill up and block the child
    assert fake.child.read_output() is None


def test_a_closed_output_is_not_watched_any_more(fake: FakeChild) -> None:
    os.close(fake.write)
    assert fake.round() == 1
    assert fake.round() == 0


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux can change the size of a pipe")
def test_the_pipe_of_a_child_that_prints_much_is_made_larger(fake: FakeChild) -> None:
    os.set_blocking(fake.write, False)
    assert os.write(fake.write, b"x" * 2 * PIPE_BYTES) == NARROW_PIPE_BYTES
    assert len(fake.child.read_output() or b"") == NARROW_PIPE_BYTES
    assert os.write(fake.write, b"x" * 2 * PIPE_BYTES) == PIPE_BYTES
    assert len(fake.child.read_output() or b"") == PIPE_BYTES


def a_run(execution_id: int, attempt: int) -> Running:
    """Return a run that has only the attributes that Slots reads."""
    delivery: Any = SimpleNamespace(message=TaskMessage("worker", 1, execution_id=execution_id, attempt=attempt))
    config = RunConfig("tests.noop", fresh=False)
    return Running(delivery, config, OutputBuffer(1000), clock.now(), "here")


@pytest.mark.parametrize("value", [True, -1, 2**63, 1.5, "7", None, [], {}])
def test_a_figure_that_is_none_is_not_recorded(value: Any) -> None:
    """A handler can write to the channel, so the figures of an answer may be anything."""
    run = a_run(7, 2)
    run.answer = {"op": "ended", "cpu_ms": value, "peak_memory_kb": 70_000}
    assert (run.ended.cpu_ms, run.ended.peak_memory_kb) == (None, 70_000)


def test_an_answer_for_another_attempt_ends_nothing(fake: FakeChild, caplog: pytest.LogCaptureFixture) -> None:
    """A handler can write to the channel and so send a second answer for its own run.

    The second answer may arrive during the next run. It must not end the next run.
    """
    fake.channel.setblocking(False)
    run = fake.child.task = a_run(7, 2)
    fake.slots.running.append(run)
    ended: dict[str, Any] = {"op": "ended", "outcome": "succeeded"}
    progress: dict[str, Any] = {"op": "progress", "text": "9/9"}
    others: list[dict[str, Any]] = [
        {},
        {"execution_id": 6, "attempt": 2},
        {"execution_id": 7, "attempt": 1},
        {"execution_id": "7", "attempt": 2},
    ]
    for other in others:
        fake.child_end.sendall(pack(ended | other) + pack(progress | other))
        fake.slots._on_frame(fake.child)
        assert (fake.slots.running, run.answer, run.progress) == ([run], None, "")
    assert caplog.text.count("another attempt") == 2 * len(others)
    own = {"execution_id": 7, "attempt": 2}
    fake.child_end.sendall(pack(progress | own) + pack(ended | own))
    fake.slots._on_frame(fake.child)
    assert (fake.slots.over, run.progress) == ([run], "9/9")


OWN: dict[str, Any] = {"execution_id": 7, "attempt": 2}
ENDED = OWN | {"op": "ended", "outcome": "succeeded"}
RESTED = OWN | {"op": "rested", "clean": True, "memory": 1}


def heard(fake: FakeChild, *frames: dict[str, Any]) -> None:
    """Start a run in the child, and handle these messages of the child."""
    fake.channel.setblocking(False)
    run = fake.child.task = a_run(7, 2)
    fake.slots.running.append(run)
    for frame in frames:
        fake.child_end.sendall(pack(frame))
    fake.slots._on_frame(fake.child)


@pytest.mark.parametrize(("may", "note"), [(True, "Left running: 4 x\\ny"), (False, "")])
def test_only_a_run_that_may_leave_processes_is_believed(fake: FakeChild, may: bool, note: str) -> None:
    """A handler can write to the channel. A command name may hold any character."""
    fake.channel.setblocking(False)
    run = fake.child.task = a_run(7, 2)
    run.child = fake.child
    run.config = replace(run.config, leaves_processes=may)
    fake.slots.running.append(run)
    fake.child_end.sendall(pack(ENDED | {"left": "4 x\ny"}))
    fake.slots._on_frame(fake.child)
    assert run.output.take().rstrip().partition(" NOTE ")[2] == note
    assert bool(run.left) == may


def test_a_run_is_over_before_its_child_is_restored(fake: FakeChild) -> None:
    heard(fake, ENDED)
    assert [run.execution_id for run in fake.slots.over] == [7]
    assert (fake.slots.pool.resting, fake.slots.pool.waiting) == ([fake.child], [])
    fake.child_end.sendall(pack(RESTED))
    fake.slots._on_frame(fake.child)
    assert (fake.slots.pool.resting, fake.slots.pool.waiting) == ([], [fake.child])


@pytest.mark.parametrize(
    "change", [{"clean": False}, {"clean": "yes"}, {"memory": 2**40}, {"memory": "much"}, {"memory": None}]
)
def test_a_child_that_is_not_restored_gets_no_other_run(fake: FakeChild, change: dict[str, Any]) -> None:
    heard(fake, ENDED, RESTED | change)
    assert (fake.slots.pool.waiting, fake.child.retiring, len(fake.slots.over)) == ([], True, 1)


@pytest.mark.parametrize("frames", [[RESTED, ENDED], [ENDED, ENDED], [ENDED, ENDED, RESTED, RESTED, ENDED]])
def test_messages_in_the_wrong_order_end_a_run_once(fake: FakeChild, frames: list[dict[str, Any]]) -> None:
    heard(fake, *frames)
    assert len(fake.slots.over) == 1
    assert fake.slots.running == []


def test_a_child_that_is_not_restored_in_time_is_killed(fake: FakeChild, monkeypatch: pytest.MonkeyPatch) -> None:
    killed: list[tuple[Child, int]] = []
    monkeypatch.setattr(fake.slots.pool, "maintain", lambda wanted, now: None)
    monkeypatch.setattr(fake.slots.pool, "signal", lambda child, number: killed.append((child, number)))
    heard(fake, ENDED)
    now = time.monotonic()
    fake.slots.maintain(now + REST_SECONDS - 1, draining=False)
    assert killed == []
    fake.slots.maintain(now + REST_SECONDS + 1, draining=False)
    fake.slots.maintain(now + REST_SECONDS + 2, draining=False)
    assert killed == [(fake.child, signal.SIGKILL)]
    assert fake.slots.pool.waiting == []


def test_a_run_waits_for_a_child_that_is_being_restored(fake: FakeChild) -> None:
    unused, first, second, new = Child(2, fake.channel, 0), a_run(8, 1), a_run(9, 1), a_run(10, 1)
    fake.slots.pool.waiting.append(unused)
    new.config = replace(new.config, fresh=True)
    heard(fake, ENDED)
    assert fake.slots._waits_for_rest(first)
    assert not fake.slots._waits_for_rest(new)
    fake.slots.running.append(first)
    assert not fake.slots._waits_for_rest(second)  # only one child is being restored
    fake.child_end.sendall(pack(RESTED))
    fake.slots._on_frame(fake.child)
    fake.child.runs = 1
    assert not fake.slots._waits_for_rest(first)
