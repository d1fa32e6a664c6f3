"""Gives each run of this consumer a slot and a child process, and ends runs that exceed their limits.

This module uses neither the database nor the broker. A run that has ended moves to the list `over` with its outcome.
The supervisor then settles the run.
"""

from __future__ import annotations

import selectors
import signal
import time

from scheduling.broker import Delivery
from scheduling.consumer import left_processes
from scheduling.consumer.forked_child import Child
from scheduling.consumer.gathering import Gathering
from scheduling.consumer.memory import MEBIBYTE, MemoryWatch
from scheduling.consumer.output import OutputBuffer
from scheduling.consumer.process_pool import ProcessPool
from scheduling.consumer.run_log import log_exited, log_finished, log_spawned
from scheduling.consumer.run_output import output_for
from scheduling.consumer.running import Running
from scheduling.core.outcome import Outcome, TimedOut
from scheduling.handlers.run_config import RunConfig
from scheduling.logs import get_logger

log = get_logger(__name__)

TERM_GRACE_SECONDS = 5.0
"""The time between SIGTERM and SIGKILL when a run is timed out, cancelled, or ended by a shutdown."""

CHILD_MEMORY_LIMIT = 512 * MEBIBYTE
"""The limit in bytes. A child that has used more memory is replaced after its run."""

REST_SECONDS = 5.0
"""The longest time between the messages `ended` and `rested` of a child. A child that needs longer is killed."""


class Slots:
    """Runs at most `count` attempts at once.

    Args:
        count: the number of slots.
        selector: the supervisor's selector.
        output_limit: how many bytes of an attempt's output are kept.
    """

    def __init__(self, count: int, selector: selectors.BaseSelector, output_limit: int) -> None:
        self.count = count
        self.running: list[Running] = []
        """The runs that have a slot and wait for their child or have it. A batch has one slot, and its leader is here.
        """
        self.gathering = Gathering()
        self.over: list[Running] = []
        self.pool = ProcessPool(selector, self._on_frame, self._on_output, self._on_exit)
        self.output_limit = output_limit
        self._memory = MemoryWatch()

    @property
    def free(self) -> int:
        """How many slots are free. A run in `over` no longer uses a slot."""
        return max(0, self.count - self.busy)

    @property
    def busy(self) -> int:
        """How many slots are used, or reserved for a batch that gathers."""
        return len(self.running) + len(self.gathering)

    @property
    def owned(self) -> list[Running]:
        """All runs that have started and are not over, with those of batches."""
        found = [run for leader in self.running for run in (leader.batch.members if leader.batch else (leader,))]
        return [*found, *self.gathering.runs]

    def launch(self, run: Running) -> None:
        """Add a started run. The run gets a child at once, or later if no suitable child waits."""
        self.running.append(run)
        self._assign(run)

    def output_for(self, delivery: Delivery, config: RunConfig) -> OutputBuffer:
        """Make a buffer for a run's output. A run of a batch gets another one when the batch is called."""
        if config.batch is not None:
            return OutputBuffer(self.output_limit)
        return output_for(delivery, config, self.output_limit)

    def maintain(self, now: float, draining: bool) -> None:
        """Fork children in advance, assign children to waiting runs, and enforce the limits. `now` is monotonic."""
        for run, verdict in self._memory.exceeded(self.running, now):
            self.end(run, verdict, now)
        waiting = [run for run in self.running if run.child is None]
        # Fork a spare child while the other children work. A draining consumer needs none, because it starts no runs.
        spare = 0 if draining else max(1, self.free)
        self.pool.maintain(len(waiting) + spare, now)
        for child in self.pool.resting:
            if child.rest_until is not None and now >= child.rest_until:
                child.rest_until = None
                self.pool.signal(child, signal.SIGKILL)
        for run in waiting:
            self._assign(run)
        self._enforce_time_limits(now)
        for run in list(self.running):
            if run.kill_at is not None and now >= run.kill_at and run.child is not None:
                run.kill_at = None
                run.output.note("It did not end when asked; its process group is killed.", time.time())
                self.pool.signal(run.child, signal.SIGKILL)

    def _enforce_time_limits(self, now: float) -> None:
        for run in list(self.running):
            if run.deadline is not None and now >= run.deadline and run.verdict is None:
                self.end(run, TimedOut(run.config.time_limit), now)
            if run.end_at is not None and now >= run.end_at and run.verdict is not None:
                run.end_at = None
                self.end(run, run.verdict, now)

    def end(self, run: Running, verdict: Outcome, now: float, grace: float = TERM_GRACE_SECONDS) -> None:
        """End a run: SIGTERM now, SIGKILL after `grace` seconds. If `grace` is 0, SIGKILL now.

        Args:
            verdict: the reason for the end. If the method is called again for the same run, the first verdict is kept.
        """
        if run.verdict is None:
            run.verdict = verdict
        if run.child is None:
            self._finish(run)
            return
        run.kill_at = now + grace
        self.pool.signal(run.child, signal.SIGTERM if grace > 0 else signal.SIGKILL)

    def release(self, over: list[Running], recorded: list[Running]) -> None:
        """Remove the first runs from `over`. The results of the runs in `recorded` were recorded."""
        del self.over[: len(over)]
        for run in over:
            left_processes.release(run, self.pool, recorded=run in recorded)

    def next_clock(self) -> float | None:
        """The monotonic time at which `maintain` must act next; None if no time limit and no signal is pending."""
        deadlines = [run.deadline for run in self.running if run.deadline and run.verdict is None]
        signals = [at for run in self.running for at in (run.end_at, run.kill_at) if at]
        return min([*deadlines, *signals], default=None)

    def _assign(self, run: Running) -> None:
        if not run.config.fresh:
            self._read_resting()
        if self._waits_for_rest(run):
            return
        child = self.pool.acquire(run.config.fresh)
        if child is None:
            if run.config.fresh:
                self.pool.make_room()
            return
        run.child, run.pid = child, child.pid
        if run.batch is not None:
            run.batch.start()
        child.task = run
        child.runs += 1
        child.read_output()  # drop output from processes that an earlier run has started
        if run.config.time_limit:
            run.deadline = time.monotonic() + run.config.time_limit
        log_spawned(run)
        try:
            child.send(run.task())
        except OSError:
            log.warning("A waiting child was gone; the run's attempt ends as crashed", extra={"pid": child.pid})

    def _read_resting(self) -> None:
        """Read the messages of resting children until a used child is free.

        A child rests for less time than the supervisor needs to settle its run.
        """
        if any(free.runs for free in self.pool.waiting):
            return
        for child in self.pool.resting:
            self._on_frame(child)
            if child.rest_until is None and not child.retiring:
                return

    def _waits_for_rest(self, run: Running) -> bool:
        """Whether the run waits for a child that is being restored. The unused child is for a run that needs one."""
        if run.config.fresh or any(child.runs for child in self.pool.waiting):
            return False
        resting = len(self.pool.resting)
        return resting > 0 and sum(1 for other in self.running if other.child is None and other is not run) < resting

    # --- events ---------------------------------------------------------------------------

    def _on_output(self, child: Child) -> None:
        data = child.read_output()
        if data is None:
            # The child's answer came in the same select(), and `_finish` has already emptied the pipe. The child gets
            # further runs, so the selector must keep watching its output. Otherwise the pipe would fill up, and the
            # child would block for ever.
            return
        if not data:
            self.pool.stop_watching_output(child)
        elif child.task is not None:
            child.task.output.feed(data, time.time())

    def _on_frame(self, child: Child) -> None:
        for frame in self.pool.frames(child):
            run: Running | None = child.task
            if run is None:
                continue
            if not run.is_named_by(frame):
                # Handlers can write to the channel. The answer of an earlier run must not end this run.
                log.warning("A child's message for another attempt is ignored", extra={"pid": child.pid})
            elif frame.get("op") in ("progress", "watches"):
                run.hear(frame)
            elif frame.get("op") == "ended" and run in self.running:
                run.answer = frame
                run.show_progress(frame.get("progress"))
                if not frame.get("terminated"):  # a terminated child exits, and `judge` needs its wait status
                    self._answered(run, child)
            elif frame.get("op") == "rested" and child.rest_until is not None:
                self._rested(child, frame)

    def _answered(self, run: Running, child: Child) -> None:
        failed = (run.answer or {}).get("outcome") != "succeeded"
        self._finish(run)
        child.answered = run
        log_finished(run)
        left_processes.note(run, self.pool)
        if run.config.fresh or run.verdict or failed or child.runs >= run.config.recycle_after:
            self.pool.retire(child)
        else:
            child.rest_until = time.monotonic() + REST_SECONDS

    def _rested(self, child: Child, frame: dict[str, object]) -> None:
        memory = frame.get("memory")
        small = isinstance(memory, int) and memory <= CHILD_MEMORY_LIMIT
        if small and frame.get("clean") is True:
            self.pool.give_back(child)
        else:
            self.pool.retire(child)

    def _on_exit(self, child: Child) -> None:
        self._on_frame(child)  # a last message may still be in the channel
        run: Running | None = child.task
        if (ended := run or child.answered) is not None:
            log_exited(ended)
        if run is not None and run in self.running:
            self._finish(run)

    def _finish(self, run: Running) -> None:
        """Read the run's remaining output and set its outcome.

        All output is in the pipe by now, because a child writes its output before its answer.
        """
        for _ in range(256):  # at most 64 MiB, because a process that the run started may write for ever
            data = run.child.read_output() if run.child is not None else None
            if not data:
                break
            run.output.feed(data, time.time())
        self.running.remove(run)
        if run.batch is not None:
            run.batch.share_end()
        for ended in run.batch.members if run.batch is not None else (run,):
            ended.outcome = ended.judge()
            self.over.append(ended)
