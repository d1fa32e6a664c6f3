"""A handler sees the notice of its own run only, and the notice stays in the channel."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from typing import Any

import pytest

from scheduling.consumer.child import _next_task
from scheduling.consumer.framing import FrameReader, pack
from scheduling.consumer.notices import CANCEL, STOP, CancelWatch, Watch, notice

TASK: dict[str, Any] = {"run": {"execution_id": 7, "attempt": 2}}


@pytest.fixture
def ends() -> Iterator[tuple[socket.socket, socket.socket]]:
    """Provide the two ends of a channel: that of the consumer, and that of the child."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield ours, theirs


Ends = tuple[socket.socket, socket.socket]


def test_a_look_finds_the_notice_and_leaves_it_in_the_channel(ends: Ends) -> None:
    told: list[str] = []
    watch = CancelWatch(ends[1], TASK, lambda: told.append("looks"))
    assert not watch()
    data = pack(notice(CANCEL, 7, 2))
    ends[0].sendall(data)
    assert watch()
    assert watch()
    assert told == ["looks"]
    assert ends[1].recv(4096) == data


def test_a_forked_process_of_the_handler_sees_the_notice_too(ends: Ends) -> None:
    watch = CancelWatch(ends[1], TASK, lambda: None)
    ends[0].sendall(pack(notice(CANCEL, 7, 2)))
    pid = os.fork()
    if pid == 0:
        os._exit(0 if watch() else 1)
    assert os.waitpid(pid, 0)[1] == 0
    assert watch()


@pytest.mark.parametrize(
    "data",
    [
        pack(notice(CANCEL, 7, 1)),
        pack(notice(CANCEL, 6, 2)),
        pack(notice(STOP, 7, 2)),
        pack({"op": "other", "execution_id": 7, "attempt": 2}),
        pack(notice(CANCEL, 7, 2))[:-1],
        b"\xff\xff\xff\xff",
        b"\x00\x00\x00\x02[]",
    ],
)
def test_anything_else_is_no_notice(ends: Ends, data: bytes) -> None:
    ends[0].sendall(data)
    assert not CancelWatch(ends[1], TASK, lambda: None)()


def test_a_consumer_that_is_gone_cancels_nothing(ends: Ends) -> None:
    ends[0].close()
    assert not CancelWatch(ends[1], TASK, lambda: ends[1].sendall(b"x"))()


def test_a_notice_that_came_too_late_is_no_task(ends: Ends) -> None:
    ends[0].sendall(pack(notice(CANCEL, 7, 2)) + pack(notice(CANCEL, 7, 2)) + pack(TASK))
    ends[0].close()
    reader, pending = FrameReader(), list[dict[str, Any]]()
    assert _next_task(ends[1], reader, pending) == TASK
    assert _next_task(ends[1], reader, pending) is None


def test_both_notices_of_a_run_are_seen_wherever_they_wait(ends: Ends) -> None:
    cancelled, stops = CancelWatch(ends[1], TASK, lambda: None), Watch(STOP, ends[1], TASK)
    ends[0].sendall(pack(notice(STOP, 7, 2)))
    assert (cancelled(), stops()) == (False, True)
    ends[0].sendall(pack(notice(CANCEL, 7, 2)))
    assert (cancelled(), stops()) == (True, True)
    # The child may have read a notice together with the task.
    assert Watch(STOP, ends[1], TASK, [notice(STOP, 7, 2)])()
