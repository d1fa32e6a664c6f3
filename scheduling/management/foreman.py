"""The foreman runs several commands at the same time. It prints their output, restarts them and stops them."""

from __future__ import annotations

import selectors
import signal
import time
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from enum import IntEnum
from typing import TypeAlias

from scheduling.management.child import Backoff, Child, ChildSpec, describe
from scheduling.management.log_prefix import Prefixer
from scheduling.management.orphan_reaper import OrphanReaper, kill_session
from scheduling.processes.loaded_code import EXIT_NEW_CODE
from scheduling.processes.shutdown import ShutdownRequest

Watch: TypeAlias = Callable[[], bool]
"""A function that the foreman calls about four times a second until the function returns False."""

_TURN_SECONDS = 0.25
_REMIND_SECONDS = 5.0


class Exit(IntEnum):
    """Exit codes of the foreman."""

    CLEAN = 0
    FORCED = 3
    """A child had to be killed."""


class Foreman:
    """Starts every child in a session of its own and handles all children in one thread.

    After the first stop signal (SIGINT, SIGTERM or SIGHUP), the foreman asks every child to stop and waits at most
    `grace` seconds. After the second signal, the foreman asks every child again and waits at most `hurry` seconds. A
    consumer that is asked twice gives back its runs at once. The third signal ends the wait. When the wait is over, the
    foreman kills each child that still runs, with all processes of the child's session.

    If the foreman dies before it has stopped the children, the orphan reaper stops them.

    Args:
        specs: the commands to run. Each command needs a unique name.
        out: receives the output of the commands.
        grace: seconds that the children have to finish after the first signal.
        hurry: seconds that the children have to finish after the second signal.
        backoff: says how long the foreman waits before each restart of a child.
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
        self._asked = 0  # how many stop signals the foreman has handled
        self._deadline = 0.0
        self._remind = 0.0
        self._forced = False

    def run(self, watch: Watch | None = None) -> Exit:
        """Run the children until a stop signal arrives. Returns when all children have ended.

        Call this method in the main thread, because only the main thread receives signals.

        Args:
            watch: called regularly after all children have been started, until it returns False or a signal arrives.
        """
        next_watch = 0.0
        with (
            ShutdownRequest() as stop,
            OrphanReaper(self._grace) as self._warden,
            selectors.DefaultSelector() as self._selector,
        ):
            self._selector.register(stop, selectors.EVENT_READ)
            try:
                for child in self._children:
                    if child.wanted:
                        self._start(child)
                while not self._asked or self._running():
                    self._turn(stop)
                    if watch and not self._asked and time.monotonic() >= next_watch:
                        next_watch = time.monotonic() + _TURN_SECONDS
                        watch = watch if watch() else None
            finally:
                self._kill()  # after an error, some children may still run
        return Exit.FORCED if self._forced else Exit.CLEAN

    def all_running(self) -> bool:
        """Whether every child that is needed is alive now."""
        return all(child.alive or not child.wanted for child in self._children)

    def pids(self, names: Collection[str]) -> list[int]:
        """The process ids of the children with these names. A child that has not been started has none."""
        return [child.pid for child in self._children if child.name in names and child.started]

    def _turn(self, stop: ShutdownRequest) -> None:
        """Wait up to _TURN_SECONDS for output or a signal. Then handle output, signals, ended children and restarts."""
        for key, _mask in self._selector.select(_TURN_SECONDS):
            if isinstance(key.fileobj, Child):
                self._read(key.fileobj)
        stop.clear()
        while self._asked < stop.asked:
            self._stop()
        for child in self._children:
            if child.started and not child.alive:
                self._bury(child)
            elif not self._asked:
                self._follow_demand(child)
        if self._asked:
            self._wait()

    def _follow_demand(self, child: Child) -> None:
        """Start a child whose time has come, and end a child that is not needed or needs other arguments."""
        if not child.started:
            due = time.monotonic() if child.due is None else child.due
            if child.wanted and time.monotonic() >= due:
                self._start(child)
        elif child.outdated and not child.leaving:
            why = "starts again, because there is more for it to do" if child.wanted else "is not needed any more"
            self._out.say(f"{child.name} {why}.")
            child.leave()

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
        """Print the next piece of a child's output. Returns False if there was no output."""
        data = child.read()
        if data == b"":
            # The child has closed its output, so the foreman stops watching it. The child may still be running.
            with suppress(KeyError):
                self._selector.unregister(child)
        if data:
            self._out.feed(child.name, data)
        return bool(data)

    def _bury(self, child: Child) -> None:
        """Clean up after a child that has ended. Plan its restart, unless the foreman is stopping."""
        # Kill the processes that the child left behind. They could keep the port or continue without supervision.
        kill_session(child.pid)
        self._warden.ended(child.pid)
        while self._read(child):
            pass
        self._out.finish(child.name)
        with suppress(KeyError):
            self._selector.unregister(child)
        returncode, left = child.bury(), child.leaving
        if left and not self._asked:
            self._out.say(f"{child.name} stopped.")  # if it is needed, the next turn starts it
        elif not self._asked and returncode == EXIT_NEW_CODE:
            child.plan_at_once(self._backoff)
            self._out.say(f"The code of {child.name} has changed; starting it again with the new code.")
        elif not self._asked:
            self._again_later(child, f"{child.name} {describe(returncode)}")
        elif returncode in (
            0,
            EXIT_NEW_CODE,
            -signal.SIGTERM,
        ):  # SIGTERM ends a child that has not set its signal handler yet
            self._out.say(f"{child.name} stopped.")
        else:
            self._out.say(f"{child.name} {describe(returncode)}.")

    def _again_later(self, child: Child, what: str) -> None:
        self._out.say(f"{what}; starting it again in {child.plan(self._backoff):g} s.")

    def _stop(self) -> None:
        """Handle one more stop signal. The first two signals ask the children to stop; the third ends the wait."""
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
        """Print regularly which children are still running. Kill these children when the time to stop is over."""
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
