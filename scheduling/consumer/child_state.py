"""Records the state of a child process before its first run, and restores that state after each run.

A child runs many handlers, one after the other. A change that one handler makes to the process must not affect the
next handler. `ChildState.restore` undoes many kinds of changes. Then it compares the threads, the priority, the
resource limits and the open descriptors with the recorded state. If they differ, `restore` returns False, and the child
is replaced.
"""

from __future__ import annotations

import decimal
import logging
import os
import resource
import select
import signal
import socket
import sys
import time
from _signal import getsignal  # type: ignore[import-not-found]  # signal.getsignal is 15 times as slow: it makes enums
from contextlib import suppress
from fcntl import F_DUPFD_CLOEXEC, fcntl
from typing import Any, TextIO

from django.db import connections, reset_queries
from django.db.backends.base.base import BaseDatabaseWrapper

from scheduling.consumer.interpreter_state import InterpreterState, priority
from scheduling.consumer.open_descriptors import OpenDescriptors
from scheduling.processes.file_identity import file_identity

_LIMITS = sorted({getattr(resource, name) for name in dir(resource) if name.startswith("RLIMIT_")})
_SIGNALS = sorted(signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP})
_TIMERS = (signal.ITIMER_REAL, signal.ITIMER_VIRTUAL, signal.ITIMER_PROF)
_THREADS = "/proc/self/task"
_LOGGERS = ("", "scheduling.run")
_KEPT_FROM = 64
"""The duplicates of descriptors 0, 1 and 2 get this number or higher numbers. `restore` copies the duplicates back."""


class ChildState:
    """A snapshot of the process. Make it once, before the first run, while no database connection is open."""

    def __init__(self) -> None:
        self._kept = {number: fcntl(number, F_DUPFD_CLOEXEC, _KEPT_FROM) for number in (0, 1, 2)}
        self._standard = {number: file_identity(number) for number in self._kept}
        self._streams = (sys.stdin, sys.stdout, sys.stderr)
        self._loggers = [(logger, _logger_state(logger)) for logger in map(logging.getLogger, _LOGGERS)]
        self._disabled = logging.root.manager.disable
        self._directory = os.getcwd()
        self._environment = _environment()
        self._zone = (time.tzname, time.timezone)
        self._umask = os.umask(0o077)
        os.umask(self._umask)
        self._handlers = {number: getsignal(number) for number in _SIGNALS}
        self._mask = signal.pthread_sigmask(signal.SIG_BLOCK, ())
        self._decimal = decimal.getcontext().copy()
        self._timeout = socket.getdefaulttimeout()
        self._interpreter = InterpreterState()
        self._priority = priority()
        self._limits = [resource.getrlimit(limit) for limit in _LIMITS]
        self._threads = _threads()
        self._descriptors = OpenDescriptors()

    def restore(self) -> bool:
        """Restore the process; returns whether the child can be used again.

        The result is False if restoring failed, or if the threads, the priority, the resource limits or the open
        descriptors differ from the snapshot.
        """
        try:
            self._restore_signals()  # first, because an alarm that the handler has set could end the process
            self._restore_streams()
            self._restore_process()
            self._restore_python()
            _restore_connections()
            return self._is_as_born()
        except Exception:
            return False

    def _restore_signals(self) -> None:
        for timer in _TIMERS:
            if signal.getitimer(timer) != (0.0, 0.0):
                signal.setitimer(timer, 0)
        for number in signal.sigpending():
            signal.signal(number, signal.SIG_IGN)  # discards a pending signal before the mask is restored
        for number, handler in self._handlers.items():
            if getsignal(number) != handler:
                signal.signal(number, handler)
        if signal.pthread_sigmask(signal.SIG_BLOCK, ()) != self._mask:
            signal.pthread_sigmask(signal.SIG_SETMASK, self._mask)

    def _restore_streams(self) -> None:
        # Replace the stream objects before the descriptors. A handler may have installed a stream object that closes
        # its descriptor when the object is deleted.
        remade = (sys.stdin, sys.stdout, sys.stderr) != self._streams or not all(map(_usable, self._streams))
        if remade:
            sys.stdin = sys.stdout = sys.stderr = self._streams[0]
        changed = [number for number, born in self._standard.items() if file_identity(number) != born]
        if changed:
            connections.close_all()  # a connection may have got the number of a closed standard descriptor
        for number in changed:
            os.dup2(self._kept[number], number)
        if remade:
            former = self._streams[2]
            self._streams = open_streams()
            for handler in self._loggers[0][1]["handlers"]:
                if isinstance(handler, logging.StreamHandler) and handler.stream is former:
                    handler.stream = sys.stderr

    def _restore_process(self) -> None:
        os.umask(self._umask)
        directory = None
        with suppress(OSError):
            directory = os.getcwd()
        if directory != self._directory:
            os.chdir(self._directory)
        environment = _environment()
        if environment != self._environment:
            for name in environment.keys() - self._environment.keys():
                del os.environb[name]
            for name, value in self._environment.items():
                if environment.get(name) != value:
                    os.environb[name] = value
        if (time.tzname, time.timezone) != self._zone:
            time.tzset()

    def _restore_python(self) -> None:
        for logger, born in self._loggers:
            if _logger_state(logger) != born:
                logger.__dict__.update(born | {"handlers": list(born["handlers"])})
                logger.setLevel(born["level"])  # this also clears the logger's cache of enabled levels
        if logging.root.manager.disable != self._disabled:
            logging.disable(self._disabled)
        decimal.setcontext(self._decimal.copy())
        if socket.getdefaulttimeout() != self._timeout:
            socket.setdefaulttimeout(self._timeout)
        self._interpreter.restore()

    def _is_as_born(self) -> bool:
        if priority() != self._priority:
            return False
        if _threads() != self._threads or [resource.getrlimit(limit) for limit in _LIMITS] != self._limits:
            return False
        return self._descriptors.are_unchanged()


def _environment() -> dict[bytes, bytes]:
    # CPython keeps the pairs in `_data`. To copy them through the mapping takes 100 times as long.
    return dict(getattr(os.environb, "_data", os.environb))


def _logger_state(logger: logging.Logger) -> dict[str, Any]:
    state = {name: getattr(logger, name) for name in ("level", "disabled", "propagate")}
    return state | {"handlers": list(logger.handlers)}


def open_streams() -> tuple[TextIO, TextIO, TextIO]:
    """Make and return new `sys.stdin`, `sys.stdout` and `sys.stderr`. Closing them leaves descriptors 0 to 2 open."""
    sys.stdin = open(0, encoding="utf-8", errors="backslashreplace", closefd=False)  # noqa: SIM115
    sys.stdout, sys.stderr = _writer(1), _writer(2)
    return sys.stdin, sys.stdout, sys.stderr


def _writer(number: int) -> TextIO:
    return open(number, "w", buffering=1, encoding="utf-8", errors="backslashreplace", closefd=False)


def _usable(stream: Any) -> bool:
    try:
        return not stream.closed and (not stream.writable() or stream.line_buffering) and stream.encoding == "utf-8"
    except ValueError:  # the stream is detached
        return False


def _threads() -> int:
    try:
        return len(os.listdir(_THREADS))  # includes threads that Python did not start
    except FileNotFoundError:
        import threading

        return threading.active_count()


def _restore_connections() -> None:
    """Roll back open transactions, close broken database connections, and clear the query log."""
    for connection in connections.all(initialized_only=True):
        if connection.connection is not None:
            _restore_connection(connection)
    reset_queries()


def _restore_connection(connection: BaseDatabaseWrapper) -> None:
    if connection.in_atomic_block or connection.needs_rollback:
        with suppress(Exception):
            connection.close()
        del connections[connection.alias]  # `close` does not end the atomic block, so the wrapper is removed
        return
    try:
        connection.close_if_unusable_or_obsolete()  # also closes a connection whose autocommit was changed
        if connection.connection is not None:
            # This ends a transaction that the handler began with SQL. If there is no transaction, nothing is sent.
            connection.connection.rollback()
    except Exception:
        connection.close()


def close_idle_connections(channel: socket.socket, seconds: float) -> None:
    """Close all database connections, unless the next task arrives within this time.

    A database server allows few connections, and a child may wait for hours.
    """
    if not any(connection.connection is not None for connection in connections.all(initialized_only=True)):
        return
    poll = select.poll()
    poll.register(channel, select.POLLIN)
    if not poll.poll(seconds * 1000):
        with suppress(Exception):  # the server has closed it, or cannot be reached
            connections.close_all()


def memory_bytes() -> int:
    """The most memory that this process has used."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
