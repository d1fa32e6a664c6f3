"""The option `--restart-on-change`: a command ends when its code has changed, and the foreman starts it again."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time

from django.core.management.base import CommandParser

from scheduling.handlers.registry import handler_modules
from scheduling.processes.loaded_code import EXIT_NEW_CODE, LoadedCode
from scheduling.processes.renewal import LOOK_SECONDS, Renewal

OPTION = "--restart-on-change"


def add_restart_on_change(parser: CommandParser) -> None:
    """Add the option. Its value is `options["restart_on_change"]`."""
    text = f"end with exit code {EXIT_NEW_CODE} when a file of the loaded code has changed (`up` then starts it again)"
    parser.add_argument(OPTION, action="store_true", help=text)


def leave_for(renewal: Renewal | None) -> None:
    """Exit with EXIT_NEW_CODE if the process has ended because of its code."""
    if renewal is not None and renewal.begun:
        sys.exit(EXIT_NEW_CODE)


class CodeWatch(threading.Thread):
    """Sends SIGTERM to this process when its code has changed and can be loaded. For a server with its own main loop.

    Attributes:
        begun: whether the signal was sent.
    """

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self._code = LoadedCode(handler_modules())
        self.begun = False

    def run(self) -> None:
        while not (self._code.look(time.monotonic(), LOOK_SECONDS) and not self._code.problem()):
            time.sleep(LOOK_SECONDS)
        self.begun = True
        os.kill(os.getpid(), signal.SIGTERM)
