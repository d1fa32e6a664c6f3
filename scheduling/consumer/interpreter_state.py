"""Records settings of the Python interpreter before the first run of a child, and restores them after each run.

A handler can change these settings with one call. Then they would change every later run of the child, for example its
speed (`sys.settrace`) or which modules it can import (`sys.path`).
"""

from __future__ import annotations

import gc
import locale
import os
import sys
import warnings
from contextlib import suppress
from typing import Any

_HOOKS = ("excepthook", "displayhook", "unraisablehook")


class InterpreterState:
    """A snapshot of the interpreter's settings. Make it once, before the first run."""

    def __init__(self) -> None:
        self._trace, self._profile = sys.gettrace(), sys.getprofile()
        self._hooks = [(name, getattr(sys, name)) for name in _HOOKS]
        self._lists: list[tuple[list[Any], list[Any]]] = [
            (found, list(found)) for found in (sys.path, sys.meta_path, sys.path_hooks)
        ]
        self._filters = list(warnings.filters)
        self._collecting, self._threshold = gc.isenabled(), gc.get_threshold()
        self._interval, self._digits = sys.getswitchinterval(), sys.get_int_max_str_digits()
        self._recursion = sys.getrecursionlimit()
        self._locale = locale.setlocale(locale.LC_ALL)

    def restore(self) -> None:
        """Restore the settings.

        Raises:
            Exception: a setting cannot be restored.
        """
        if sys.gettrace() is not self._trace:
            sys.settrace(self._trace)
        if sys.getprofile() is not self._profile:
            sys.setprofile(self._profile)
        for name, born in self._hooks:
            setattr(sys, name, born)
        for (found, values), name in zip(self._lists, ("path", "meta_path", "path_hooks"), strict=True):
            setattr(sys, name, found)  # the handler may have replaced the list
            if found != values:
                found[:] = values
        if warnings.filters != self._filters:
            warnings.filters[:] = self._filters  # type: ignore[index]
            warnings._filters_mutated()  # type: ignore[attr-defined]
        self._restore_limits()
        if locale.setlocale(locale.LC_ALL) != self._locale:
            locale.setlocale(locale.LC_ALL, self._locale)

    def _restore_limits(self) -> None:
        if gc.isenabled() != self._collecting:
            (gc.enable if self._collecting else gc.disable)()
        if gc.get_threshold() != self._threshold:
            gc.set_threshold(*self._threshold)
        if sys.getswitchinterval() != self._interval:
            sys.setswitchinterval(self._interval)
        if sys.get_int_max_str_digits() != self._digits:
            sys.set_int_max_str_digits(self._digits)
        if sys.getrecursionlimit() != self._recursion:
            sys.setrecursionlimit(self._recursion)


def priority() -> tuple[int, int, frozenset[int]]:
    """The priority, the scheduling policy and the processors of this process.

    Without special rights, a process cannot raise its priority.
    """
    policy, processors = 0, frozenset[int]()
    with suppress(AttributeError, OSError):  # only Linux has these calls
        policy, processors = os.sched_getscheduler(0), frozenset(os.sched_getaffinity(0))
    return os.nice(0), policy, processors


def yield_to_supervisor() -> None:
    """Let a child that wakes up not interrupt the supervisor. The supervisor renews leases and reads all output.

    Linux does so for processes with the policy SCHED_BATCH (sched(7)). Their share of the processors stays the same.
    """
    with suppress(AttributeError, OSError):
        os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))
