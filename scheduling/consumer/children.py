"""The supervisor's side of the forkserver: children that wait, work, and are replaced.

A spare child is always being made while the others work, so that a run which wants a fresh
process does not wait for a fork.
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
from dataclasses import dataclass, field
from typing import Any

from scheduling.consumer import forkserver, wire
from scheduling.logs import get_logger

log = get_logger(__name__)


@dataclass(eq=False)
class Child:
    """One forked process: a channel for tasks and answers, a pipe for its output."""

    number: int
    channel: socket.socket
    output: int
    pid: int | None = None
    runs: int = 0
    reader: wire.FrameReader = field(default_factory=wire.FrameReader)
    task: Any = None
    """What the supervisor runs in it; None while it waits."""
    status: int | None = None
    """Its wait status, once it has ended."""
    retiring: bool = False

    def read_output(self, limit: int = 65536) -> bytes | None:
        """What the pipe holds now, at most `limit` bytes; empty when it has ended, None when nothing waits."""
        try:
            return os.read(self.output, limit)
        except BlockingIOError:
            return None

    def send(self, message: dict[str, Any]) -> None:
        """Hand over a task.

        Raises:
            OSError: the child is gone.
        """
        self.channel.setblocking(True)
        try:
            self.channel.settimeout(10)
            self.channel.sendall(wire.pack(message))
        finally:
            self.channel.setblocking(False)


class Nursery:
    """Keeps one forkserver and its children.

    Args:
        selector: the supervisor's; children are registered with the callbacks.
        on_frame, on_output, on_exit: called from the supervisor's loop.
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

    def tend(self, wanted: int, now: float) -> None:
        """Restart a forkserver that died; have `wanted` children waiting or being born."""
        if self._process is None:
            if now >= self._restart_at:
                self.start()
            return
        if not self.ready:
            return
        born = sum(1 for child in self.all.values() if child.task is None and not child.retiring)
        for _ in range(wanted - born):
            self._fork()

    def pick(self, fresh: bool) -> Child | None:
        """A waiting child: an unused one for `fresh`, else rather a used one."""
        for child in reversed(self.waiting):
            if (child.runs == 0) == fresh:
                self.waiting.remove(child)
                return child
        if not fresh and self.waiting:
            return self.waiting.pop()
        return None

    def give_back(self, child: Child) -> None:
        """The child waits for its next task."""
        child.task = None
        self.waiting.append(child)

    def retire(self, child: Child) -> None:
        """Let a child end: it does when its channel closes; its group is ended after it."""
        child.retiring = True
        if child in self.waiting:
            self.waiting.remove(child)
        with suppress(OSError):
            child.channel.shutdown(socket.SHUT_WR)

    def deafen(self, child: Child) -> None:
        """Stop watching an output that has ended; else the selector would wake for ever."""
        with suppress(KeyError, ValueError):
            self._selector.unregister(child.output)

    def frames(self, child: Child) -> list[dict[str, Any]]:
        """What the child said since; what is no frame ends it."""
        found: list[dict[str, Any]] = []
        try:
            while data := child.channel.recv(65536):
                found += child.reader.feed(data)
            with suppress(KeyError, ValueError):  # the end of the stream: its exit follows
                self._selector.unregister(child.channel)
        except BlockingIOError:
            pass
        except (OSError, wire.WireError) as error:
            if isinstance(error, wire.WireError):
                log.error("A child wrote what is no message and is killed: %s", error, extra={"pid": child.pid})
                self.signal(child, signal.SIGKILL)
            with suppress(KeyError, ValueError):
                self._selector.unregister(child.channel)
        return found

    def signal(self, child: Child, number: int) -> None:
        """Send a signal to the child's process group, through its parent, which knows whether it lives."""
        if self._control is not None:
            with suppress(OSError):
                self._control.sendall(forkserver.CONTROL.pack(forkserver.SIGNAL, child.number, number))

    def stop(self, timeout: float = 5.0) -> None:
        """End every child and the forkserver."""
        if self._control is not None:
            with suppress(KeyError):
                self._selector.unregister(self._control)
            self._control.close()  # the forkserver kills its children and ends
            self._control = None
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
        assert self._control is not None  # noqa: S101 - `ready` says so
        ours, theirs = socket.socketpair()
        read, write = os.pipe()
        self._next = (self._next + 1) % 2**31
        child = Child(self._next, ours, read)
        try:
            socket.send_fds(
                self._control, [forkserver.CONTROL.pack(forkserver.FORK, child.number, 0)], [theirs.fileno(), write]
            )
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
        # An earlier event of the same round may have closed this child's files, and the kernel
        # gives the numbers out again.
        if child.number in self.all:
            callback(child)

    def _hear(self) -> None:
        assert self._control is not None  # noqa: S101 - registered only while it is there
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
            child = self.all.get(number)
            if op == forkserver.READY:
                self.ready, self._failures = True, 0
            elif child is None:
                continue
            elif op == forkserver.FORKED:
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
        """It died: its children were killed by the kernel or are killed here; the runs are outcomes."""
        assert self._process is not None and self._control is not None  # noqa: S101, PT018
        self._selector.unregister(self._control)
        self._control.close()
        self._control = None
        status = self._process.wait()
        self._process, self.ready = None, False
        self._failures += 1
        delay = min(2.0 ** (self._failures - 1), 30.0)
        self._restart_at = time.monotonic() + delay
        log.error("The process that starts the children ended with status %s; a new one follows in %ss", status, delay)
        for child in list(self.all.values()):
            if child.pid is not None:
                with suppress(ProcessLookupError, PermissionError):
                    os.killpg(child.pid, signal.SIGKILL)
            self._gone(child, int(signal.SIGKILL))

    def _forget(self, child: Child) -> None:
        self.all.pop(child.number, None)
        if child in self.waiting:
            self.waiting.remove(child)
        for file in (child.channel, child.output):
            with suppress(KeyError, ValueError):
                self._selector.unregister(file)
        child.channel.close()
        with suppress(OSError):
            os.close(child.output)
