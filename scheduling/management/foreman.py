"""Runs several commands side by side, shows what they write, starts again what dies, and stops them together."""

from __future__ import annotations

import selectors
import signal
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from enum import IntEnum
from typing import TypeAlias

from scheduling.management.child import Backoff, Child, ChildSpec, describe
from scheduling.management.prefix import Prefixer
from scheduling.management.warden import Warden, kill_session
from scheduling.stop import Stop

__all__ = ["Backoff", "ChildSpec", "Exit", "Foreman", "Watch"]

Watch: TypeAlias = Callable[[], bool]
"""Called about four times a second until it returns False."""

_TURN_SECONDS = 0.25
_REMIND_SECONDS = 5.0


class Exit(IntEnum):
    """What the foreman's process ends with."""

    CLEAN = 0
    FORCED = 3
    """Somebody had to be killed."""


class Foreman:
    """Starts the children, each in a session of its own, and serves them from one thread.

    A first SIGINT or SIGTERM asks every child to stop and waits for them. A second asks them again, which ours take
    as "hand back your work now", and waits `hurry` seconds. Whatever outlives the wait is killed with everything in
    its session; a third signal ends the wait. Any other end of the foreman leaves the children to the warden, which
    does as a first signal would.

    Args:
        specs: what to run; names are unique.
        out: where their lines go.
        grace: seconds that the children have to finish after a first signal.
        hurry: seconds that they have after a second.
        backoff: the pauses between a death and the next start.
    """

    def __init__(
        self,
        specs: Sequence[ChildSpec],
        out: Prefixer,
        *,
        grace: float = 35.0,
        hurry: float = 2.0,
        backoff: Backoff | None = None,
    ) -> None:
        self._children = [Child(spec) for spec in specs]
        self._out = out
        self._grace = grace
        self._hurry = hurry
        self._backoff = backoff or Backoff()
        self._asked = 0  # how often we were told to stop, and passed it on
        self._deadline = 0.0
        self._remind = 0.0
        self._forced = False

    def run(self, watch: Watch | None = None) -> Exit:
        """Serve until told to stop; return once no child is left. To be called in the main thread.

        Args:
            watch: called from time to time, first when all children have been started.
        """
        next_watch = 0.0
        with (
            Stop() as stop,
            Warden(self._grace) as self._warden,
            selectors.DefaultSelector() as self._selector,
        ):
            self._selector.register(stop, selectors.EVENT_READ)
            try:
                for child in self._children:
                    self._start(child)
                while not self._asked or self._running():
                    self._turn(stop)
                    if watch and not self._asked and time.monotonic() >= next_watch:
                        next_watch = time.monotonic() + _TURN_SECONDS
                        watch = watch if watch() else None
            finally:
                self._kill()  # only after an error is anybody left
        return Exit.FORCED if self._forced else Exit.CLEAN

    def all_running(self) -> bool:
        """Whether every child is alive now."""
        return all(child.alive for child in self._children)

    def _turn(self, stop: Stop) -> None:
        """Wait for something to happen, and answer it."""
        for key, _mask in self._selector.select(_TURN_SECONDS):
            if isinstance(key.fileobj, Child):
                self._read(key.fileobj)
        stop.clear()
        while self._asked < stop.asked:
            self._stop()
        for child in self._children:
            if child.started and not child.alive:
                self._bury(child)
            elif not self._asked and child.due is not None and time.monotonic() >= child.due:
                self._start(child)
        if self._asked:
            self._wait()

    def _running(self) -> list[Child]:
        return [child for child in self._children if child.started]

    def _start(self, child: Child) -> None:
        try:
            child.start()
        except OSError as error:
            self._again_later(child, f"{child.name} cannot be started ({error})")
            return
        self._warden.began(child.pid)
        self._selector.register(child, selectors.EVENT_READ)

    def _read(self, child: Child) -> bool:
        """Pass one piece of output on; False when there is none at present."""
        data = child.read()
        if data == b"":
            # Closed, though the child may live on: no longer a reason to wake.
            with suppress(KeyError):
                self._selector.unregister(child)
        if data:
            self._out.feed(child.name, data)
        return bool(data)

    def _bury(self, child: Child) -> None:
        """Clear away a child that has ended, and plan the next unless we are stopping."""
        # What it leaves behind would hold the port, or go on working for nobody.
        kill_session(child.pid)
        self._warden.ended(child.pid)
        while self._read(child):
            pass
        self._out.finish(child.name)
        with suppress(KeyError):
            self._selector.unregister(child)
        returncode = child.bury()
        if not self._asked:
            self._again_later(child, f"{child.name} {describe(returncode)}")
        elif returncode in (0, -signal.SIGTERM):  # the latter: before it could set a handler
            self._out.say(f"{child.name} stopped.")
        else:
            self._out.say(f"{child.name} {describe(returncode)}.")

    def _again_later(self, child: Child, what: str) -> None:
        self._out.say(f"{what}; starting it again in {child.plan(self._backoff):g} s.")

    def _stop(self) -> None:
        """Count one more request to stop, and pass it on."""
        self._asked += 1
        running = self._running()
        now = time.monotonic()
        if self._asked > 2 or not running:
            self._deadline = now
            return
        names = _names(running)
        self._out.leave_line()
        if self._asked == 1:
            self._deadline = now + self._grace
            self._remind = now + _REMIND_SECONDS
            self._out.say(f"Stopping: {names} may take up to {self._grace:g} s to finish. Ctrl-C again to hurry them.")
        else:
            self._deadline = now + self._hurry
            self._out.say(f"Not waiting any longer: what still runs in {self._hurry:g} s is killed ({names}).")
        for child in running:
            child.ask()

    def _wait(self) -> None:
        """Remind of who is waited for, and end the wait when it is over."""
        running = self._running()
        now = time.monotonic()
        if running and now >= self._deadline:
            self._out.say(f"Killing {_names(running)}: still running after the time to stop.")
            self._kill()
        elif running and self._asked == 1 and now >= self._remind:
            self._remind = now + _REMIND_SECONDS
            self._out.say(f"Waiting for {_names(running)}, {self._deadline - now:.0f} s left.")

    def _kill(self) -> None:
        for child in self._running():
            self._forced = True
            child.kill()
            self._bury(child)


def _names(children: Sequence[Child]) -> str:
    return ", ".join(child.name for child in children)
