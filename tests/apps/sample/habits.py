"""A handler that changes the state of its process, and a handler that prints the state of its process."""

from __future__ import annotations

import decimal
import gc
import json
import locale
import logging
import logging.config
import os
import resource
import signal
import socket
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable

from django.db import connection, transaction
from django.utils import timezone, translation
from pydantic import BaseModel

from scheduling.handlers import RetryPolicy, Run, worker

NEVER = RetryPolicy(max_retries=0)
_held: list[object] = []


def _lose_the_directory() -> None:
    gone = tempfile.mkdtemp()
    os.chdir(gone)
    os.rmdir(gone)


def _change_the_zone() -> None:
    os.environ["TZ"] = "Asia/Tokyo"
    time.tzset()


def _write() -> None:
    with connection.cursor() as cursor:
        cursor.execute("UPDATE django_migrations SET app = 'left'")


def _leave_autocommit_off() -> None:
    connection.set_autocommit(False)
    _write()


def _leave_a_block() -> None:
    transaction.atomic().__enter__()
    _write()


def _begin_by_hand() -> None:
    connection.ensure_connection()
    connection.close_at = None  # a persistent connection
    with connection.cursor() as cursor:
        cursor.execute("BEGIN")
    _write()


def _own_stdout() -> None:
    sys.stdout = open(1, "w")  # noqa: SIM115 - deleting the file object closes descriptor 1


def _block_and_raise() -> None:
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
    os.kill(os.getpid(), signal.SIGUSR1)


def _make_the_restore_hang() -> None:
    os.umask = lambda _mask: time.sleep(600)  # type: ignore[assignment, return-value]


def _raise() -> None:
    raise RuntimeError("failed")


RESTORED: dict[str, Callable[[], object]] = {
    "nothing": lambda: None,
    "stdout closed": lambda: sys.stdout.close(),
    "stdout detached": lambda: _held.append(sys.stdout.detach()),  # type: ignore[attr-defined]
    "stdout replaced": lambda: setattr(sys, "stdout", None),
    "stdout owned": _own_stdout,
    "stderr closed": lambda: sys.stderr.close(),
    "descriptor 1 closed": lambda: os.close(1),
    "descriptors 0 and 2 closed": lambda: (os.close(0), os.close(2)),
    "directory": lambda: os.chdir("/"),
    "directory removed": _lose_the_directory,
    "alarm": lambda: signal.alarm(1),
    "timer": lambda: signal.setitimer(signal.ITIMER_REAL, 0.05),
    "umask": lambda: os.umask(0o777),
    "environment": lambda: os.environ.update(LEFT="1", PATH="/nowhere"),
    "environment emptied": os.environ.clear,
    "zone of the process": _change_the_zone,
    "decimal": lambda: setattr(decimal.getcontext(), "prec", 3),
    "socket timeout": lambda: socket.setdefaulttimeout(0.001),
    "log level": lambda: logging.getLogger().setLevel(logging.CRITICAL),
    "log handlers": logging.getLogger().handlers.clear,
    "logging off": lambda: logging.disable(logging.CRITICAL),
    "logging configured": lambda: logging.config.dictConfig({"version": 1}),
    "signal handler": lambda: signal.signal(signal.SIGTERM, signal.SIG_IGN),
    "signal handler of its own": lambda: signal.signal(signal.SIGUSR2, lambda *_: None),
    "signal mask": _block_and_raise,
    "recursion": lambda: sys.setrecursionlimit(200),
    "settrace": lambda: sys.settrace(lambda *_: None),
    "setprofile": lambda: sys.setprofile(lambda *_: None),
    "sys.path": sys.path.clear,
    "hooks": lambda: (setattr(sys, "excepthook", None), setattr(sys, "displayhook", None)),
    "garbage collection": lambda: (gc.disable(), gc.set_threshold(1)),
    "warnings are errors": lambda: warnings.simplefilter("error"),
    "the locale": lambda: locale.setlocale(locale.LC_ALL, "C"),
    "the switch interval": lambda: sys.setswitchinterval(10),
    "the digit limit": lambda: sys.set_int_max_str_digits(0),
    "decimal traps": lambda: decimal.getcontext().clear_traps(),
    "language": lambda: translation.activate("de"),
    "time zone": lambda: timezone.activate("Asia/Tokyo"),
    "autocommit": _leave_autocommit_off,
    "block": _leave_a_block,
    "transaction": _begin_by_hand,
}
"""Changes that the child undoes after the run. The consumer uses the same child for the next run."""

REPLACED: dict[str, Callable[[], object]] = {
    "file size": lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (10, 10)),
    "open files": lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (3, 3)),
    "thread": lambda: threading.Thread(target=time.sleep, args=(600,), daemon=True).start(),
    "descriptor": lambda: os.open(os.devnull, os.O_RDONLY),
    "priority": lambda: os.nice(5),
    "scheduling policy": lambda: os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0)),
    "kept descriptors closed": lambda: os.closerange(64, 80),
    "failure": _raise,
    "restore hangs": _make_the_restore_hang,
}
"""Changes that the child cannot undo, and an error. After each of them, the consumer uses a new child."""


class HabitParams(BaseModel):
    """A key of RESTORED or REPLACED."""

    name: str


@worker("tests.habit", params=HabitParams, retry=NEVER)
def misbehave(params: HabitParams, run: Run) -> None:
    """Makes the named change to its process."""
    (RESTORED | REPLACED)[params.name]()


def _rows_left() -> int:
    with connection.cursor() as cursor:
        cursor.execute("SELECT COUNT(*) FROM django_migrations WHERE app = 'left'")
        return int(cursor.fetchone()[0])


def _descriptors() -> int:
    connection.close()
    return len(os.listdir("/proc/self/fd"))


def _interpreter() -> list[object]:
    hooks = [sys.gettrace(), sys.getprofile(), sys.excepthook, sys.displayhook]
    filters = [action for action, *_ in warnings.filters]
    limits = [sys.getswitchinterval(), sys.get_int_max_str_digits(), gc.isenabled(), gc.get_threshold()]
    return [*map(str, hooks), sys.path, filters, *limits, locale.setlocale(locale.LC_ALL)]


@worker("tests.tell", retry=NEVER)
def tell(params: BaseModel, run: Run) -> None:
    """Prints the state of its process."""
    own = {"RETRY_COUNT", "CRON_EXECUTION_ID"}
    time.sleep(0.06)  # seconds; the timer in RESTORED takes only 0.05 s
    umask = os.umask(0o022)
    os.umask(umask)
    found = {
        "database": [_rows_left(), connection.get_autocommit(), connection.in_atomic_block],
        "descriptors": _descriptors(),
        "directory": os.getcwd(),
        "environment": {name: value for name, value in os.environ.items() if name not in own},
        "zone": [time.tzname, timezone.get_current_timezone_name(), translation.get_language()],
        "umask": umask,
        "timers": [signal.alarm(0), signal.getitimer(signal.ITIMER_REAL)],
        "decimal": [decimal.getcontext().prec, len(str(decimal.getcontext().traps))],
        "timeout": socket.getdefaulttimeout(),
        "logging": [logging.getLogger().level, len(logging.getLogger().handlers), logging.root.manager.disable],
        "mask": sorted(signal.pthread_sigmask(signal.SIG_BLOCK, ())),
        "signals": [str(signal.getsignal(number))[:20] for number in range(1, 32)],
        "limits": [resource.getrlimit(limit) for limit in (resource.RLIMIT_FSIZE, resource.RLIMIT_NOFILE)],
        "threads": threading.active_count(),
        "recursion": sys.getrecursionlimit(),
        "interpreter": _interpreter(),
        "priority": [os.nice(0), os.sched_getscheduler(0), len(os.sched_getaffinity(0))],
        "stdin": sys.stdin.read(),
    }
    print("to stderr", file=sys.stderr)  # noqa: T201
    run.log.info("logged")
    for name, value in found.items():
        print(name, json.dumps(value))  # noqa: T201
