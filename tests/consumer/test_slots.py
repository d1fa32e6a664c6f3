"""A slot reads its child's output as long as the child lives, even if another event has emptied the output before."""

from __future__ import annotations

import os
import selectors
import socket
from collections.abc import Iterator
from contextlib import suppress
from types import SimpleNamespace
from typing import Any

import pytest
from django.utils import timezone as clock

from scheduling.consumer.framing import pack
from scheduling.consumer.output import OutputBuffer
from scheduling.consumer.process_pool import Child
from scheduling.consumer.running import Running
from scheduling.consumer.slots import Slots


class Heard:
    """A child without a process. The test writes to the child's pipe, and the selector watches the pipe."""

    def __init__(self) -> None:
        self.selector = selectors.DefaultSelector()
        self.slots = Slots(1, self.selector, 10_000)
        self.channel, self.far = socket.socketpair()
        read, self.write = os.pipe()
        os.set_blocking(read, False)
        self.child = Child(1, self.channel, read)
        self.slots.pool.all[1] = self.child
        self.selector.register(read, selectors.EVENT_READ, lambda: self.slots._on_output(self.child))

    def round(self, *, drained_first: bool = False) -> int:
        """Run one round of the selector and return the number of its events."""
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
        self.far.close()
        for descriptor in (self.child.output, self.write):
            with suppress(OSError):
                os.close(descriptor)


@pytest.fixture
def heard() -> Iterator[Heard]:
    """Provide a child without a process. The test writes the child's output."""
    made = Heard()
    yield made
    made.close()


def test_a_child_is_still_heard_after_its_answer_drained_its_output(heard: Heard) -> None:
    os.write(heard.write, b"last words of the first run\n")
    assert heard.round(drained_first=True) == 1
    os.write(heard.write, b"first words of the second run\n")
    assert heard.round() == 1  # if the pipe were not watched, it would fill up and block the child
    assert heard.child.read_output() is None


def test_an_output_that_ended_is_not_watched_any_more(heard: Heard) -> None:
    os.close(heard.write)
    assert heard.round() == 1
    assert heard.round() == 0


def a_run(execution_id: int, attempt: int) -> Running:
    """Make a run with only the attributes that the slots read."""
    delivery: Any = SimpleNamespace(message=SimpleNamespace(execution_id=execution_id, attempt=attempt))
    config: Any = SimpleNamespace(fresh=False, recycle_after=1000)
    return Running(delivery, config, OutputBuffer(1000), clock.now(), "here")


def test_an_answer_for_another_attempt_ends_nothing(heard: Heard, caplog: pytest.LogCaptureFixture) -> None:
    """A handler that writes to the channel itself can cause a second answer for its own run.

    The second answer arrives during the next run and must not end that run.
    """
    heard.channel.setblocking(False)
    run = heard.child.task = a_run(7, 2)
    heard.slots.running.append(run)
    ended: dict[str, Any] = {"op": "ended", "outcome": "succeeded"}
    progress: dict[str, Any] = {"op": "progress", "text": "9/9"}
    others: list[dict[str, Any]] = [
        {},
        {"execution_id": 6, "attempt": 2},
        {"execution_id": 7, "attempt": 1},
        {"execution_id": "7", "attempt": 2},
    ]
    for other in others:
        heard.far.sendall(pack(ended | other) + pack(progress | other))
        heard.slots._on_frame(heard.child)
        assert (heard.slots.running, run.answer, run.progress) == ([run], None, "")
    assert caplog.text.count("another attempt") == 2 * len(others)
    own = {"execution_id": 7, "attempt": 2}
    heard.far.sendall(pack(progress | own) + pack(ended | own))
    heard.slots._on_frame(heard.child)
    assert (heard.slots.over, run.progress) == ([run], "9/9")
    assert heard.slots.pool.waiting == [heard.child]
