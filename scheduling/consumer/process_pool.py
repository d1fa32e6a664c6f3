"""Keeps a pool of child processes for the supervisor (the consumer's main process). The forkserver forks the children.

A spare child is forked while the other children work. So a run that needs a fresh process does not wait for a fork.
"""

from __future__ import annotations

import os
import selectors
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from scheduling.consumer import forkserver, framing
from scheduling.consumer.descendants import kill_group
from scheduling.consumer.forked_child import Child
from scheduling.logs import get_logger

log = get_logger(__name__)


class ProcessPool:
    """One forkserver and its children.

    Args:
        selector: the supervisor's selector. The channel and the output of each child are registered there.
        on_frame: called when a child's channel can be read.
        on_output: called when a child's output can be read.
        on_exit: called when a child has ended.
    """

    def __init__(
        self,
        selector: selectors.BaseSelector,
        on_frame: Callable[[Child], None],
        on_output: Callable[[Child], None],
        on_exit: Callable[[Child], None],
    ) -> None:
        self._selector = selector
        self._on_frame, self._on_output, self._on_exit = on_frame, on_output, on_exit
        self._process: subprocess.Popen[bytes] | None = None
        self._control: socket.socket | None = None
        self._next = 0
        self._failures = 0
        self._restart_at = 0.0
        self.ready = False
        self.all: dict[int, Child] = {}
        self.waiting: list[Child] = []

    def start(self) -> None:
        """Start the forkserver, a new interpreter with the same settings and import path."""
        ours, theirs = socket.socketpair()
        code = (
            f"import sys; sys.path[:] = {sys.path!r}; "
            f"from scheduling.consumer.forkserver import main; main({theirs.fileno()})"
        )
        self._process = subprocess.Popen(
            [sys.executable, "-c", code], pass_fds=[theirs.fileno()], start_new_session=True, stdin=subprocess.DEVNULL
        )
        theirs.close()
        self._control = ours
        self._selector.register(ours, selectors.EVENT_READ, self._hear)

    def maintain(self, wanted: int, now: float) -> None:
        """Restart a forkserver that has died. Fork until `wanted` children are waiting or being forked."""
        if self._process is None:
            if now >= self._restart_at:
                self.start()
            return
        if not self.ready:
            return
        born = sum(1 for child in self.all.values() if child.task is None and not child.retiring)
        for _ in range(wanted - born):
            self._fork()

    @property
    def resting(self) -> list[Child]:
        """The children whose run has ended, and that are not restored yet."""
        return [child for child in self.all.values() if child.rest_until is not None]

    def acquire(self, fresh: bool) -> Child | None:
        """Take a waiting child; None if no suitable child waits.

        A fresh run gets only an unused child. For other runs, a used child is preferred.
        """
        for child in reversed(self.waiting):
            if (child.runs == 0) == fresh:
                self.waiting.remove(child)
                return child
        if not fresh and self.waiting:
            return self.waiting.pop()
        return None

    def give_back(self, child: Child) -> None:
        """Return a child to the pool. The child waits there for its next task."""
        child.task = child.rest_until = None
        self.waiting.append(child)

    def retire(self, child: Child) -> None:
        """Close the channel, which makes the child end. The forkserver then kills the child's process group."""
        child.retiring, child.task, child.rest_until = True, None, None
        if child in self.waiting:
            self.waiting.remove(child)
        with suppress(OSError):
            child.channel.shutdown(socket.SHUT_WR)

    def leave(self, child: Child) -> None:
        """Give up a child whose run has left processes running. It stays as their keeper."""
        if self._control is not None and child.number in self.all:
            with suppress(OSError):
                self._control.sendall(forkserver.CONTROL.pack(forkserver.LEAVE, child.number, 0))
            self._forget(child)

    def make_room(self) -> None:
        """Retire a used child that waits. `maintain` then forks an unused child."""
        used = next((child for child in self.waiting if child.runs), None)
        if used is not None:
            self.retire(used)

    def stop_watching_output(self, child: Child) -> None:
        """Unregister the child's output after its end. Otherwise the selector would report the end again and again."""
        self._unregister(child.output)

    def frames(self, child: Child) -> list[dict[str, Any]]:
        """Read and return the child's new messages. A child that writes an invalid frame is killed."""
        try:
            found, ended = child.receive()
            if ended:
                self._unregister(child.channel)  # the child is about to end
            return found
        except (OSError, framing.WireError) as error:
            if isinstance(error, framing.WireError):
                log.error("A child wrote what is no message and is killed: %s", error, extra={"pid": child.pid})
                self.signal(child, signal.SIGKILL)
            self._unregister(child.channel)
            return []

    def signal(self, child: Child, number: int) -> None:
        """Ask the forkserver to send a signal to the child's process group. A child that has ended gets no signal."""
        if self._control is not None:
            with suppress(OSError):
                self._control.sendall(forkserver.CONTROL.pack(forkserver.SIGNAL, child.number, number))

    def stop(self, timeout: float = 5.0) -> None:
        """End every child and the forkserver."""
        self._close_control()  # this makes the forkserver kill its children and end
        if self._process is not None:
            try:
                self._process.wait(timeout)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
            self._process = None
        for child in list(self.all.values()):
            self._forget(child)

    def _fork(self) -> None:
        assert self._control is not None  # noqa: S101 - callers check `ready` first
        ours, theirs = socket.socketpair()
        read, write = os.pipe()
        self._next = (self._next + 1) % 2**31
        child = Child(self._next, ours, read)
        request = forkserver.CONTROL.pack(forkserver.FORK, child.number, 0)
        try:
            socket.send_fds(self._control, [request], [theirs.fileno(), write])
        except OSError:
            ours.close()
            os.close(read)
            return
        finally:
            theirs.close()
            os.close(write)
        ours.setblocking(False)
        os.set_blocking(read, False)
        self.all[child.number] = child
        self._selector.register(ours, selectors.EVENT_READ, lambda: self._if_known(child, self._on_frame))
        self._selector.register(read, selectors.EVENT_READ, lambda: self._if_known(child, self._on_output))

    def _if_known(self, child: Child, callback: Callable[[Child], None]) -> None:
        # An earlier event of the same select() may have closed this child's files. Since then, other files may have
        # got the same descriptor numbers.
        if child.number in self.all:
            callback(child)

    def _hear(self) -> None:
        assert self._control is not None  # noqa: S101 - registered only while the socket is open
        try:
            data = self._control.recv(forkserver.CONTROL.size * 64)
            while len(data) % forkserver.CONTROL.size:
                data += self._control.recv(forkserver.CONTROL.size - len(data) % forkserver.CONTROL.size)
        except OSError:
            data = b""
        if not data:
            self._lose_forkserver()
            return
        for op, number, value in forkserver.CONTROL.iter_unpack(data):
            if op == forkserver.READY:
                self.ready, self._failures = True, 0
            elif (child := self.all.get(number)) is not None:
                self._on_control(op, child, value)

    def _on_control(self, op: int, child: Child, value: int) -> None:
        if op == forkserver.FORKED:
            child.pid = value
            self.waiting.append(child)
        elif op == forkserver.REFUSED:
            log.error("No new process could be made: the system is out of processes or memory")
            self._forget(child)
        elif op == forkserver.EXITED:
            self._gone(child, value)

    def _gone(self, child: Child, status: int) -> None:
        child.status = status
        if child in self.waiting:
            self.waiting.remove(child)
        self._on_exit(child)
        self._forget(child)

    def _lose_forkserver(self) -> None:
        """Handle the death of the forkserver: kill the children that survived. Their runs end as crashed."""
        assert self._process is not None  # noqa: S101
        self._close_control()
        status = self._process.wait()
        self._process, self.ready = None, False
        self._failures += 1
        delay = min(2.0 ** (self._failures - 1), 30.0)
        self._restart_at = time.monotonic() + delay
        log.error("The process that starts the children ended with status %s; a new one follows in %ss", status, delay)
        for child in list(self.all.values()):
            if child.pid is not None:
                kill_group(child.pid)
            self._gone(child, int(signal.SIGKILL))

    def _forget(self, child: Child) -> None:
        self.all.pop(child.number, None)
        if child in self.waiting:
            self.waiting.remove(child)
        for file in (child.channel, child.output):
            self._unregister(file)
        child.channel.close()
        with suppress(OSError):
            os.close(child.output)

    def _unregister(self, file: socket.socket | int) -> None:
        with suppress(KeyError, ValueError):
            self._selector.unregister(file)

    def _close_control(self) -> None:
        if self._control is not None:
            self._unregister(self._control)
            self._control.close()
            self._control = None
