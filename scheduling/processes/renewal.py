"""Ends a process whose code has changed on disk, so that its next start loads the new code."""

from __future__ import annotations

from scheduling.logs import get_logger
from scheduling.processes.loaded_code import LoadedCode
from scheduling.processes.shutdown import ShutdownRequest

log = get_logger(__name__)

LOOK_SECONDS = 1.0
"""The seconds between two looks. They are short, because a person saves a file and tries it at once."""


class Renewal:
    """Asks this process to stop, as a stop signal does, when a file of its code has changed and can be loaded.

    Attributes:
        begun: whether the process was asked to stop because of its code.
    """

    def __init__(self, code: LoadedCode, stop: ShutdownRequest) -> None:
        self._code, self._stop = code, stop
        self._said = ""
        self.begun = False

    def apply(self, monotonic: float) -> None:
        """Look at the files, at most once a second. Ask the process to stop if they have changed."""
        if self._stop.asked or not self._code.look(monotonic, LOOK_SECONDS):
            return
        if problem := self._code.problem():
            if problem != self._said:  # say it once, not every second
                self._said = problem
                log.warning("The code has changed but cannot be loaded, so the old code goes on: %s", problem)
            return
        log.info("The code has changed; ending, so that the next start loads it")
        self.begun = True
        self._stop.ask()
