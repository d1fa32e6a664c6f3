"""Slots: the runs of this process and the children they are in.

Nothing here talks to the database or the broker: events of children become runs that are `over`,
with an outcome, for the supervisor to settle.
"""

from __future__ import annotations

import logging
import selectors
import signal
import time

from scheduling.brief import Brief
from scheduling.broker import Delivery
from scheduling.consumer.children import Child, Nursery
from scheduling.consumer.output import Echo, OutputBuffer
from scheduling.consumer.running import Running
from scheduling.core.outcome import Crashed, Interrupted, Outcome, TimedOut
from scheduling.core.text import clean
from scheduling.logs import get_logger

log = get_logger(__name__)

TERM_GRACE_SECONDS = 5.0
"""From TERM to KILL for a run past its limit, cancelled, or out of grace."""

CHILD_MEMORY_LIMIT = 512 * 1024 * 1024
"""Bytes; a child that grew beyond is replaced after its run."""

ECHO_LEVELS = {"DEBUG": 10, "INFO": 20, "SUCCESS": 25, "WARN": 30, "ERROR": 40}


class Slots:
    """At most `count` runs at once.

    Args:
        count: how many.
        selector: the supervisor's.
        output_limit: bytes of output kept of a run.
    """

    def __init__(self, count: int, selector: selectors.BaseSelector, output_limit: int) -> None:
        self.count = count
        self.running: list[Running] = []
        self.over: list[Running] = []
        self.nursery = Nursery(selector, self._on_frame, self._on_output, self._on_exit)
        self._output_limit = output_limit

    @property
    def free(self) -> int:
        """Slots in which nothing runs; what is over needs no slot any more."""
        return max(0, self.count - len(self.running))

    @property
    def ready(self) -> bool:
        """Whether a run that is started now gets a child within milliseconds."""
        return self.nursery.ready

    def launch(self, each: Running) -> None:
        """Take a started run in; it gets a child now or as soon as one is born."""
        self.running.append(each)
        self._assign(each)

    def output_for(self, delivery: Delivery, brief: Brief) -> OutputBuffer:
        """A buffer that also logs what a run prints, as `[Worker:name:id] text`."""
        message = delivery.message
        head = f"[{message.type.capitalize()}:{brief.handler}:{message.execution_id}]"
        logger = logging.getLogger("scheduling.output")
        echo: Echo | None = None
        if logger.isEnabledFor(logging.INFO):

            def echo(level: str, text: str) -> None:
                logger.log(ECHO_LEVELS.get(level, logging.INFO), "%s %s", head, text)

        return OutputBuffer(self._output_limit, echo)

    def tend(self, now: float, draining: bool) -> None:
        """Keep children at hand, give waiting runs theirs, and enforce limits. `now` is monotonic."""
        waiting = [each for each in self.running if each.child is None]
        # While one works the next is made; a drain needs only those for runs already started.
        spare = 0 if draining else max(1, self.free)
        self.nursery.tend(len(waiting) + spare, now)
        for each in waiting:
            self._assign(each)
        for each in list(self.running):
            if each.deadline is not None and now >= each.deadline and each.verdict is None:
                self.end(each, TimedOut(each.brief.time_limit), now)
            if each.kill_at is not None and now >= each.kill_at and each.child is not None:
                each.kill_at = None
                each.output.note("It did not end when asked; its process group is killed.", time.time())
                self.nursery.signal(each.child, signal.SIGKILL)

    def end(self, each: Running, verdict: Outcome, now: float, grace: float = TERM_GRACE_SECONDS) -> None:
        """Have a run end: TERM now, KILL after `grace` seconds; the verdict stands from here on."""
        if each.verdict is None:
            each.verdict = verdict
        if each.child is None:
            self._finish(each, each.judge())
            return
        each.kill_at = now + grace
        self.nursery.signal(each.child, signal.SIGTERM if grace > 0 else signal.SIGKILL)

    def drop(self, each: Running) -> None:
        """Kill a run that belongs to somebody else by now; its result would be refused anyway."""
        each.fenced = True
        each.output.note("Another process owns this execution by now; this one is killed.", time.time())
        self.end(each, Crashed(lost=True), time.monotonic(), grace=0.0)

    def next_clock(self) -> float | None:
        """The next instant (monotonic) at which `tend` has to act."""
        times = [
            at for each in self.running for at in (each.deadline if each.verdict is None else None, each.kill_at) if at
        ]
        return min(times, default=None)

    def _assign(self, each: Running) -> None:
        child = self.nursery.pick(each.brief.fresh)
        if child is None:
            # A fresh run waits for a birth; used children in its way make room.
            if each.brief.fresh:
                for other in list(self.nursery.waiting):
                    if other.runs:
                        self.nursery.retire(other)
                        break
            return
        each.child, each.pid = child, child.pid
        child.task = each
        child.runs += 1
        child.read_output()  # what an earlier run's leftovers wrote is not this run's
        if each.brief.time_limit:
            each.deadline = time.monotonic() + each.brief.time_limit
        try:
            child.send(each.task())
        except OSError:
            log.warning("A waiting child was gone; the run's attempt ends as crashed", extra={"pid": child.pid})

    # --- events ---------------------------------------------------------------------------

    def _on_output(self, child: Child) -> None:
        data = child.read_output()
        if data is None:
            # An answer in the same round of the selector drained the pipe. The child lives on: were it
            # not heard any more, its next run would block for ever once the pipe is full.
            return
        if not data:
            self.nursery.deafen(child)
        elif child.task is not None:
            child.task.output.feed(data, time.time())

    def _on_frame(self, child: Child) -> None:
        for frame in self.nursery.frames(child):
            each: Running | None = child.task
            if each is None:
                continue
            if frame.get("op") == "progress":
                each.progress = clean(str(frame.get("text", "")), 64)
            elif frame.get("op") == "ended":
                each.answer = frame
                if not frame.get("terminated"):  # else its exit tells the signal or code
                    self._answered(each, child, frame)

    def _answered(self, each: Running, child: Child, frame: dict[str, object]) -> None:
        self._drain(each, child)
        self._finish(each, each.judge())
        memory = frame.get("memory")
        grown = isinstance(memory, int) and memory > CHILD_MEMORY_LIMIT
        if (
            each.brief.fresh
            or each.verdict
            or grown
            or frame.get("leftovers")
            or child.runs >= each.brief.recycle_after
        ):
            child.task = None
            self.nursery.retire(child)
        else:
            self.nursery.give_back(child)

    def _on_exit(self, child: Child) -> None:
        self._on_frame(child)  # a last word may still be in the channel
        each: Running | None = child.task
        if each is not None and each in self.running:
            self._drain(each, child)
            self._finish(each, each.judge())

    @staticmethod
    def _drain(each: Running, child: Child) -> None:
        """Everything the run wrote is in the pipe before its answer is in the channel."""
        for _ in range(1024):  # 64 MiB: what a leftover process goes on writing must not hold us
            data = child.read_output()
            if not data:
                break
            each.output.feed(data, time.time())

    def _finish(self, each: Running, outcome: Outcome) -> None:
        each.outcome = outcome
        if not isinstance(outcome, Interrupted) and each.brief.fresh and each.child is not None:
            each.deadline = each.kill_at = None
        self.running.remove(each)
        self.over.append(each)
