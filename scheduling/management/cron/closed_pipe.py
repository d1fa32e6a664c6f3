"""Ends a command without a traceback if the reader of its output, such as `head`, has ended first."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from functools import wraps
from typing import Any

from scheduling.management.cron.exit_codes import Exit


def discard_output() -> None:
    """Let stdout lead nowhere. Otherwise Python would complain at its end that it cannot flush it."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def may_be_cut(handle: Callable[..., None]) -> Callable[..., None]:
    """Decorate the method `handle` of a command: a closed pipe is the exit code CLOSED_PIPE, as in `cron`."""

    @wraps(handle)
    def call(self: Any, *args: Any, **options: Any) -> None:
        try:
            try:
                handle(self, *args, **options)
            finally:
                self.stdout.flush()
        except BrokenPipeError:
            discard_output()
            sys.exit(int(Exit.CLOSED_PIPE))

    return call
