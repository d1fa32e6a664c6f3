"""The process from which children are forked. It has loaded Django and the handlers, and has no connections.

A fork needs only milliseconds, but the start of a new interpreter needs a fifth of a second. The supervisor (the main
process of the consumer) starts the forkserver as a separate program. So the forkserver shares no broker socket, no
database connection and no thread with the supervisor. The forkserver itself also has none of these. When the
supervisor's end of the control socket closes, the forkserver kills every child's process group and ends.

Control messages have a fixed size: `op, number, value`. `number` identifies the child.

supervisor -> forkserver   FORK number (with two descriptors: channel, output), SIGNAL number signal, LEAVE number
forkserver -> supervisor   READY, FORKED number pid, REFUSED number, EXITED number wait-status
"""

from __future__ import annotations

import gc
import os
import selectors
import signal
import socket
import struct
import time
from contextlib import suppress

from scheduling.consumer.descendants import adopt_orphans, die_with_parent, kill_group, own_children

CONTROL = struct.Struct("!BII")
READY, FORK, FORKED, SIGNAL, EXITED, REFUSED, LEAVE = range(7)

END_SECONDS = 2.0
"""After the supervisor has gone: the longest time for which the forkserver waits until all processes of runs ended."""


class Forkserver:
    """Forks children on request, reaps them, and reports each fork and each exit to the supervisor."""

    def __init__(self, control: socket.socket) -> None:
        self.control = control
        self.children: dict[int, int] = {}  # pid -> number
        self.numbers: dict[int, int] = {}  # number -> pid
        self.keepers: set[int] = set()
        """The process ids of former children. Their processes go on (see `keeper`)."""
        self.wake_read, self.wake_write = os.pipe()
        os.set_blocking(self.wake_read, False)
        os.set_blocking(self.wake_write, False)

    def run(self) -> None:
        """Serve until the supervisor closes the control socket."""
        adopt_orphans()
        die_with_parent(False)  # `_end` ends the runs when the supervisor dies; the kernel would end only this process
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # the supervisor handles Ctrl-C
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(self.wake_write, warn_on_full_buffer=False)
        self._tell(READY, 0, 0)
        with selectors.DefaultSelector() as selector:
            selector.register(self.control, selectors.EVENT_READ)
            selector.register(self.wake_read, selectors.EVENT_READ)
            while True:
                for key, _ in selector.select():
                    if key.fileobj is self.control:
                        if not self._serve():
                            self._end()
                            return
                    else:
                        with suppress(BlockingIOError):
                            os.read(self.wake_read, 4096)
                        self._reap()

    def _serve(self) -> bool:
        try:
            data, descriptors, _, _ = socket.recv_fds(self.control, CONTROL.size, 2)
            while data and len(data) < CONTROL.size:
                more = self.control.recv(CONTROL.size - len(data))
                data = data + more if more else b""
        except ConnectionError:
            return False
        if not data:
            return False
        op, number, value = CONTROL.unpack(data)
        if op == FORK:
            self._fork(number, *descriptors)
        elif op == SIGNAL:
            self._signal(number, value)
        elif op == LEAVE and (pid := self.numbers.pop(number, None)) is not None:
            del self.children[pid]
            self.keepers.add(pid)
        return True

    def _fork(self, number: int, channel: int, output: int) -> None:
        parent = os.getpid()
        try:
            pid = os.fork()
        except OSError:
            self._tell(REFUSED, number, 0)  # the system is out of processes or memory; the supervisor tries again later
            os.close(channel)
            os.close(output)
            return
        if pid == 0:
            self._become_child(channel, output, parent)
        os.close(channel)
        os.close(output)
        self.children[pid] = number
        self.numbers[number] = pid
        self._tell(FORKED, number, pid)

    def _become_child(self, channel: int, output: int, parent: int) -> None:
        status = 70
        try:
            os.setsid()
            die_with_parent()
            adopt_orphans()
            if os.getppid() != parent:
                # The forkserver died before `die_with_parent` took effect, so the child would run without a supervisor.
                return
            signal.set_wakeup_fd(-1)
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGCHLD):
                signal.signal(number, signal.SIG_DFL)
            self.control.close()
            os.close(self.wake_read)
            os.close(self.wake_write)
            os.dup2(output, 1)
            os.dup2(output, 2)
            os.close(output)
            from scheduling.consumer.child import main

            status = main(socket.socket(fileno=channel))
        finally:
            # `sys.exit` would run the forkserver's clean-up in the child.
            os._exit(status)

    def _signal(self, number: int, value: int) -> None:
        pid = self.numbers.get(number)
        if pid is not None:  # the child is not reaped yet, so the pid still belongs to it
            kill_group(pid, value)

    def _reap(self) -> None:
        while True:
            try:
                found = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            except ChildProcessError:
                return
            if found is None:
                return
            # Kill the processes in the child's group. Its number is not reused until the child is reaped.
            kill_group(found.si_pid)
            _, status = os.waitpid(found.si_pid, 0)
            number = self.children.pop(found.si_pid, None)
            self.keepers.discard(found.si_pid)
            self._kill_orphans()
            if number is not None:
                self.numbers.pop(number, None)
                self._tell(EXITED, number, status)

    def _kill_orphans(self) -> None:
        """Kill the processes that an ended child has started in other sessions.

        When a child ends, they become children of the forkserver. A child that lives adopts its own orphans, so no
        process of its run is among them.
        """
        for pid in self._orphans():
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)

    def _orphans(self) -> list[int]:
        return [pid for pid in own_children() if pid not in self.children and pid not in self.keepers]

    def _end(self) -> None:
        """Kill all children and all processes that they have started. Keepers and their processes are left alone."""
        for pid in self.children:
            kill_group(pid)
        until = time.monotonic() + END_SECONDS
        while time.monotonic() < until:
            try:
                pid, _ = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            self.children.pop(pid, None)
            self.keepers.discard(pid)
            self._kill_orphans()
            if pid == 0:
                if not self.children and not self._orphans():
                    return
                time.sleep(0.01)

    def _tell(self, op: int, number: int, value: int) -> None:
        with suppress(BrokenPipeError, ConnectionResetError):
            self.control.sendall(CONTROL.pack(op, number, value))


def main(descriptor: int) -> None:
    """Entry point of the forkserver's process."""
    die_with_parent()
    with open(os.devnull) as null:
        os.dup2(null.fileno(), 0)
    import django

    django.setup()
    from django.db import connections

    from scheduling.consumer.child import prepare

    prepare()
    connections.close_all()
    gc.collect()
    gc.freeze()  # otherwise the garbage collector would make the kernel copy memory that the children share
    Forkserver(socket.socket(fileno=descriptor)).run()
