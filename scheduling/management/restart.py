"""The options `--restart-on-change` and `--reload`: a command ends when its code has changed.

With the first one, the foreman starts it again. With the second one, it starts itself again, with the same process id.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, NoReturn

from django.core.management.base import CommandParser
from django.db import connections

from scheduling.handlers.registry import handler_modules
from scheduling.logs import get_logger
from scheduling.processes.loaded_code import EXIT_NEW_CODE, LoadedCode
from scheduling.processes.renewal import LOOK_SECONDS, Renewal

log = get_logger(__name__)

OPTION = "--restart-on-change"


def add_restart_on_change(parser: CommandParser) -> None:
    """Add the options. `follows_code` reads them."""
    text = f"end with exit code {EXIT_NEW_CODE} when a file of the loaded code has changed (`up` then starts it again)"
    parser.add_argument(OPTION, action="store_true", help=text)
    text = "start anew when a file of the loaded code has changed, for development"
    parser.add_argument("--reload", action="store_true", help=text)


def follows_code(options: Mapping[str, Any]) -> bool:
    """Whether the process ends when its code has changed."""
    return bool(options["restart_on_change"] or options["reload"])


def leave_for(renewal: Renewal | None, options: Mapping[str, Any]) -> None:
    """If the process has ended because of its code, start it again, or exit with EXIT_NEW_CODE."""
    if renewal is not None and renewal.begun:
        leave(options)


def leave(options: Mapping[str, Any]) -> NoReturn:
    """Start this process again with the new code, or exit with EXIT_NEW_CODE."""
    if not options["reload"]:
        sys.exit(EXIT_NEW_CODE)
    log.info("The code has changed; starting again")
    connections.close_all()
    logging.shutdown()
    for stream in (sys.stdout, sys.stderr):
        with suppress(Exception):
            stream.flush()
    os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])  # noqa: S606 - the same command line as before


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
