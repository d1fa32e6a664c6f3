"""Slots hear a child for as long as it lives, whatever else the same round of the selector brings."""

from __future__ import annotations

import os
import selectors
import socket
from collections.abc import Iterator
from contextlib import suppress

import pytest

from scheduling.consumer.children import Child
from scheduling.consumer.slots import Slots


class Heard:
    """A child without a process: the ends of its pipe and its channel, watched as the nursery watches them."""

    def __init__(self) -> None:
        self.selector = selectors.DefaultSelector()
        self.slots = Slots(1, self.selector, 10_000)
        self.channel, self.far = socket.socketpair()
        read, self.write = os.pipe()
        os.set_blocking(read, False)
        self.child = Child(1, self.channel, read)
        self.slots.nursery.all[1] = self.child
        self.selector.register(read, selectors.EVENT_READ, lambda: self.slots._on_output(self.child))

    def round(self, *, drained_first: bool = False) -> int:
        """One round of the selector; how many events it had."""
        events = self.selector.select(0)
        if drained_first:
            while self.child.read_output():
                pass
        for key, _ in events:
            key.data()
        return len(events)

    def close(self) -> None:
        """Every descriptor."""
        self.selector.close()
        self.channel.close()
        self.far.close()
        for descriptor in (self.child.output, self.write):
            with suppress(OSError):
                os.close(descriptor)


@pytest.fixture
def heard() -> Iterator[Heard]:
    """A child whose output can be written by hand."""
    made = Heard()
    yield made
    made.close()


def test_a_child_is_still_heard_after_its_answer_drained_its_output(heard: Heard) -> None:
    os.write(heard.write, b"last words of the first run\n")
    assert heard.round(drained_first=True) == 1
    os.write(heard.write, b"first words of the second run\n")
    assert heard.round() == 1  # else they are seen when it ends, and a full pipe stops it for ever
    assert heard.child.read_output() is None


def test_an_output_that_ended_is_not_watched_any_more(heard: Heard) -> None:
    os.close(heard.write)
    assert heard.round() == 1
    assert heard.round() == 0
