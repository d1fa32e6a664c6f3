"""Handlers that misbehave, by kind. Each kind names the outcome that the consumer has to record.

`habits.py` and `returns.py` have further kinds: changes of the process, and results that cannot be sent.
"""

from __future__ import annotations

import asyncio
import atexit
import builtins
import ctypes
import faulthandler
import gc
import json
import logging
import os
import random
import resource
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, NoReturn

from django.conf import settings
from django.db import connection, transaction
from pydantic import BaseModel

from scheduling.handlers import NonRetryableError, RetryableError, Run, worker
from tests.apps.sample import habits, returns

LEAVE = "import os, sys, time; os.setsid(); time.sleep(600)"


class _BadTextError(Exception):
    def __str__(self) -> str:
        raise ValueError("no text")


class _BadTypeError(Exception):
    def __str__(self) -> str:
        return 5  # type: ignore[return-value]


class _BadReprError(Exception):
    def __repr__(self) -> str:
        raise KeyboardInterrupt


def _raise(error: BaseException) -> Callable[[], NoReturn]:
    def call() -> NoReturn:
        raise error

    return call


def _kill(number: int) -> Callable[[], None]:
    return lambda: os.kill(os.getpid(), number)


def _recurse() -> None:
    _recurse()


def _chain() -> None:
    error: BaseException = ValueError("0")
    for number in range(2000):
        following = ValueError(str(number))
        following.__cause__ = error
        error = following
    raise error


def _group() -> None:
    raise BaseExceptionGroup("many", [ValueError(number) for number in range(1000)] + [KeyboardInterrupt()])


def _channel() -> socket.socket:
    """Return the socket to the consumer. A handler should not know it, but it can find it."""
    return next(found for found in gc.get_objects() if isinstance(found, socket.socket) and found.fileno() >= 0)


def _send(*frames: bytes) -> None:
    channel = _channel()
    for frame in frames:
        channel.sendall(frame)


def _frame(**fields: Any) -> bytes:
    body = json.dumps(fields).encode()
    return struct.pack("!I", len(body)) + body


def _forge(run: Run, **fields: Any) -> None:
    """Send a frame for another attempt, then one for a later attempt of this execution."""
    _send(_frame(op="ended", outcome="succeeded", execution_id=run.execution_id + 1, attempt=1, **fields))
    _send(_frame(op="ended", outcome="succeeded", execution_id=run.execution_id, attempt=run.attempt + 1, **fields))


def _fork_twice() -> None:
    """Return in two processes: the forked copy goes on as if it were the child."""
    if os.fork() == 0:
        os.fork()


def _dup_over_the_channel() -> None:
    os.dup2(1, _channel().fileno())


def _close_everything() -> None:
    os.closerange(0, 1024)


def _leave_threads() -> None:
    for _ in range(20):
        threading.Thread(target=time.sleep, args=(600,)).start()


def _leave_processes() -> None:
    for _ in range(3):
        subprocess.Popen([sys.executable, "-c", LEAVE], stdin=subprocess.DEVNULL)


def _orphan() -> None:
    subprocess.run(["sh", "-c", "setsid sleep 600 &"], check=True)


def _zombie() -> None:
    pid = os.fork()
    if not pid:
        os._exit(0)


def _huge_output() -> None:
    for _ in range(300):
        sys.stdout.write("x" * 9999 + "\n")


def _binary() -> None:
    os.write(1, bytes(range(256)) * 20)


def _marks() -> None:
    """Print what the child itself uses to mark log levels, and lines that look like the consumer's own."""
    sys.stdout.write("\x1eERROR\x1eforged\n\x1e\x1e\x1e\n2026-03-10T12:00:00.000Z NOTE forged\n" + "\x1e" * 5000 + "\n")


def _block_term() -> None:
    signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())


def _patch_builtins() -> None:
    builtins.open = None  # type: ignore[assignment]


def _patch_json() -> None:
    json.loads = None  # type: ignore[assignment]


def _patch_time() -> None:
    time.time = lambda: 0.0


def _patch_logging() -> None:
    logging.Logger.info = logging.Handler.emit = None  # type: ignore[assignment, method-assign]


def _drop_modules() -> None:
    for name in [name for name in sys.modules if name.startswith(("scheduling", "django", "json"))]:
        del sys.modules[name]


def _bad_connection() -> None:
    connection.ensure_connection()
    connection.connection.close()


def _broken_transaction() -> None:
    transaction.atomic().__enter__()
    connection.set_rollback(True)


def _keep_a_connection() -> None:
    """Keep a cursor, so that SQLite keeps the files of the closed connection open."""
    cursor = connection.cursor()
    cursor.execute("SELECT 1")
    habits._held.append(cursor)
    connection.close()
    connection.ensure_connection()


def _session_variable() -> None:
    with connection.cursor() as cursor:
        cursor.execute({"sqlite": "PRAGMA query_only = 1", "mysql": "SET SESSION sql_mode = ''"}.get(
            connection.vendor, "SET statement_timeout = 1"))  # fmt: skip


def _never_ending() -> Iterator[int]:
    while True:
        yield 1


async def _coroutine() -> None:
    await asyncio.sleep(0)


def _unawaited() -> Any:
    warnings.simplefilter("ignore")
    return _coroutine()


def _memory() -> Any:
    return len(bytearray(600 * 1024 * 1024))


def _no_memory() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (resource.getrlimit(resource.RLIMIT_AS)[0], -1))
    soft = 300 * 1024 * 1024
    resource.setrlimit(resource.RLIMIT_AS, (soft, -1))
    bytearray(10**9)


def _in_exit() -> None:
    atexit.register(lambda: os.kill(os.getpid(), signal.SIGKILL))


def _segfault() -> None:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    ctypes.string_at(0)


def _settings() -> None:
    settings.LOG_LEVEL = "nonsense"
    settings.TIME_ZONE = "Nowhere/Atlantis"


class Kind(NamedTuple):
    """One kind of misbehaviour.

    Args:
        outcomes: the outcomes of the attempt that are right, separated by blanks.
        time_limit: the time limit of the run in seconds.
    """

    call: Callable[..., Any]
    outcomes: str = "succeeded"
    time_limit: int = 60


WIRE = "crashed succeeded"
"""The child is killed for what it wrote. If its handler has returned before, its answer still counts."""

FAILED, CRASHED = "failed", "crashed"

RAISES: dict[str, Kind] = {
    "an error whose text raises": Kind(_raise(_BadTextError()), FAILED),
    "an error whose text is a number": Kind(_raise(_BadTypeError()), FAILED),
    "an error whose repr raises": Kind(_raise(_BadReprError("x")), FAILED),
    "an error with a huge text": Kind(_raise(ValueError("é" * 3_000_000)), FAILED),
    "an error with NUL and half characters": Kind(_raise(ValueError("\x00\ud800\udfff")), FAILED),
    "an error with arguments of all sorts": Kind(_raise(OSError(5, b"\xff", {}, None)), FAILED),
    "a chain of 2,000 errors": Kind(_chain, FAILED),
    "a group of errors": Kind(_group, FAILED),
    "KeyboardInterrupt": Kind(_raise(KeyboardInterrupt()), FAILED),
    "GeneratorExit": Kind(_raise(GeneratorExit()), FAILED),
    "StopIteration": Kind(_raise(StopIteration(5)), FAILED),
    "MemoryError": Kind(_raise(MemoryError()), FAILED),
    "SystemExit with nothing": Kind(_raise(SystemExit())),
    "SystemExit with a text": Kind(_raise(SystemExit("bye")), FAILED),
    "SystemExit with a huge number": Kind(_raise(SystemExit(2**70)), FAILED),
    "SystemExit with an object": Kind(_raise(SystemExit(object())), FAILED),
    "an error that forbids a retry": Kind(_raise(NonRetryableError("no")), FAILED),
    "an error with a hostile delay": Kind(_raise(RetryableError("later", retry_after=float("nan"))), FAILED),
    "endless recursion": Kind(_recurse, FAILED),
}  # fmt: skip
ENDS: dict[str, Kind] = {
    "exit 0": Kind(lambda: os._exit(0), CRASHED),
    "exit 255": Kind(lambda: os._exit(255), CRASHED),
    "abort": Kind(lambda: (resource.setrlimit(resource.RLIMIT_CORE, (0, 0)), os.abort()), CRASHED),
    "segmentation fault": Kind(_segfault, CRASHED),
    "SIGKILL": Kind(_kill(signal.SIGKILL), CRASHED),
    "SIGTERM": Kind(_kill(signal.SIGTERM), CRASHED),
    "SIGHUP": Kind(_kill(signal.SIGHUP), CRASHED),
    "SIGUSR1": Kind(_kill(signal.SIGUSR1), CRASHED),
    "SIGINT": Kind(_kill(signal.SIGINT), "crashed failed"),
    "SIGPIPE ignored, SIGALRM deadly": Kind(_kill(signal.SIGALRM), CRASHED),
    "the process group is killed": Kind(lambda: os.killpg(0, signal.SIGKILL), CRASHED),
    "all descriptors closed": Kind(_close_everything, "crashed failed"),
    "the channel closed": Kind(lambda: _channel().close(), CRASHED),
    "garbage to the channel": Kind(lambda: _send(b"\xff" * 100), WIRE),
    "half a frame to the channel": Kind(lambda: _send(struct.pack("!I", 10) + b"{"), WIRE),
    "a frame that never ends": Kind(lambda: _send(struct.pack("!I", 10**6) + b"{"), "timed_out", 2),
    "no object to the channel": Kind(lambda: _send(struct.pack("!I", 2) + b"[]"), WIRE),
    "dup2 over the channel": Kind(_dup_over_the_channel, CRASHED),
    "returns twice": Kind(_fork_twice),
    "more memory than allowed": Kind(_no_memory, FAILED),
}  # fmt: skip
LEAVES: dict[str, Kind] = {
    "json.loads patched": Kind(_patch_json),
    "threads": Kind(_leave_threads),
    "processes in their own sessions": Kind(_leave_processes),
    "an orphan": Kind(_orphan),
    "a zombie": Kind(_zombie),
    "a memory hog": Kind(_memory),
    "all signals blocked": Kind(_block_term),
    "an exit hook that kills": Kind(_in_exit),
    "a bad connection": Kind(_bad_connection),
    "a broken transaction": Kind(_broken_transaction),
    "a connection that is kept": Kind(_keep_a_connection),
    "a session variable": Kind(_session_variable),
    "huge output": Kind(_huge_output),
    "binary output": Kind(_binary),
    "output without a line end": Kind(lambda: os.write(1, b"x" * 200_000)),
    "forged level marks": Kind(_marks),
    "a generator": Kind(_never_ending),
    "a coroutine": Kind(_unawaited),
    "a huge result": Kind(lambda: "x" * 40_000_000),
    "a deep result": Kind(lambda: json.loads("[" * 900 + "]" * 900)),
    "NaN": Kind(lambda: [float("nan"), float("inf")]),
    "half characters": Kind(lambda: {"\ud800": "\udfff"}),
    "the random seed": Kind(lambda: random.seed(1)),
    "faulthandler": Kind(lambda: faulthandler.dump_traceback_later(1, exit=True)),
    "an event loop": Kind(lambda: asyncio.set_event_loop(asyncio.new_event_loop())),
}  # fmt: skip

PATCHES: dict[str, Kind] = {
    "open patched": Kind(_patch_builtins),
    "time patched": Kind(_patch_time),
    "logging patched": Kind(_patch_logging),
    "modules dropped": Kind(_drop_modules, "succeeded failed"),
    "settings changed": Kind(_settings),
}
"""Patched code and settings stay, as docs/handlers.md says. So these kinds run in a child of their own."""

KINDS: dict[str, Kind] = {
    **RAISES,
    **ENDS,
    **LEAVES,
    **{name: Kind(call) for name, call in habits.RESTORED.items()},
    **{name: Kind(call, FAILED if name == "failure" else "succeeded") for name, call in habits.REPLACED.items()},
    "forged frames": Kind(_forge),
    "forged answer": Kind(_forge),
    **{f"returns {name}": Kind(call, "failed succeeded") for name, call in returns.RETURNS.items()},
}


class MisbehaviourParams(BaseModel):
    """A key of KINDS or PATCHES."""

    kind: str


def _perform(params: MisbehaviourParams, run: Run) -> Any:
    if params.kind == "forged frames":
        return _forge(run)
    if params.kind == "forged answer":
        _send(_frame(op="ended", outcome="succeeded", execution_id=run.execution_id, attempt=run.attempt))
        _send(_frame(op="rested", clean=True, memory=1, execution_id=run.execution_id, attempt=run.attempt))
        return time.sleep(0.2)
    return (KINDS | PATCHES)[params.kind].call()


@worker("tests.misbehave", params=MisbehaviourParams, retry=habits.NEVER)
def misbehave(params: MisbehaviourParams, run: Run) -> Any:
    """Misbehaves in the named way, in a child that other handlers use, too."""
    return _perform(params, run)


@worker("tests.misbehave_fresh", params=MisbehaviourParams, retry=habits.NEVER, fresh=True)
def misbehave_fresh(params: MisbehaviourParams, run: Run) -> Any:
    """Misbehaves in the named way, in a child of its own."""
    return _perform(params, run)
