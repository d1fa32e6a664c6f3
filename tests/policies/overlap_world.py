"""Producers and consumers in this process, with a simulated clock, beside a model of the overlap policies."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import pytest

from scheduling.broker.database import DatabaseBroker
from scheduling.consumer import leases
from scheduling.consumer.output import OutputBuffer
from scheduling.consumer.output_store import mark_stored
from scheduling.consumer.running import Running
from scheduling.core.lifecycle import LET_IN, OPEN_STATES, State
from scheduling.core.outcome import Cancelled, Failed, Succeeded
from scheduling.execution.cancel import cancel
from scheduling.execution.claim import claim_due
from scheduling.execution.run_now import run_now
from scheduling.inbox.actions import republish
from scheduling.models import Scheduler, SchedulerExecution
from scheduling.processes.identity import container_id
from scheduling.producer.sweeps import sweep
from tests.execution.start_world import LEASE_SECONDS, Consumer
from tests.factories import SchedulerFactory, due
from tests.support import NOON

SLOTS = 4
OUTCOMES: dict[str, Any] = {
    "succeeds": Succeeded,
    "fails": lambda: Failed("builtins.ConnectionError", "it is down"),
    "is cancelled": lambda: Cancelled("ann"),
}


@dataclass
class Line:
    """What the model knows of one schedule, by the rules of docs/schedules.md alone.

    Args:
        open: the executions that were let in and are not over, with "waits" or "runs".
        blocked: the execution that waits for its turn.
        over: the executions that are over, with their states.
    """

    policy: str
    open: dict[int, str] = field(default_factory=dict)
    blocked: int | None = None
    over: dict[int, str] = field(default_factory=dict)

    def new(self, pk: int) -> None:
        """A new execution wants to start."""
        if not self.open and self.blocked is None:
            self.open[pk] = "waits"
        elif self.policy == "skip":
            self.over[pk] = "skipped"
        elif self.policy == "wait":
            if not self.open:  # the one that waits has its turn, although no process has let it in yet
                self.let_in()
            self._take_place(pk)
        else:
            for other in [other for other, doing in self.open.items() if doing == "waits"]:
                self.end(other, "cancelled")
            self._take_place(pk)
            if not self.open:
                self.let_in()

    def _take_place(self, pk: int) -> None:
        if self.blocked is not None:
            self.over[self.blocked] = "skipped"
        self.blocked = pk

    def let_in(self) -> None:
        """The execution that waits has its turn."""
        assert self.blocked is not None
        assert not self.open, f"{self.blocked} was let in beside {self.open}"
        self.open[self.blocked], self.blocked = "waits", None

    def end(self, pk: int, state: str) -> None:
        """An execution that was let in is over."""
        del self.open[pk]
        self.over[pk] = state


class World:
    """The site. `now` moves only by `pass_time`, `turn` and `sweep`."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.now, self.broker = NOON, DatabaseBroker()
        patch.setattr(time, "monotonic", lambda: 1_000.0 + (self.now - NOON).total_seconds())
        patch.setattr("django.utils.timezone.now", lambda: self.now)
        self.consumers = [Consumer(), Consumer()]
        self.lines: dict[int, Line] = {}
        for policy in ("skip", "wait", "replace", "wait"):
            row = SchedulerFactory(
                handler="tests.noop", schedule="0 0 1 1 *", params={}, overlap=policy, max_retries=1,
                retry_delay_ms=2_000,
            )  # fmt: skip
            self.lines[row.pk] = Line(policy)
        self.occurrences = 0
        self.counts: Counter[str] = Counter()

    def schedule(self, number: int) -> Scheduler:
        return Scheduler.objects.get(pk=sorted(self.lines)[number])

    def fall_due(self, number: int) -> None:
        """Let an occurrence fall due, and claim it."""
        self.pass_time(1)
        row, line = self.schedule(number), self.lines[self.schedule(number).pk]
        before = self._skips(row.pk)
        due(row, self.now)
        claim_due(self.now, embedded=True)
        self.occurrences += 1
        new = SchedulerExecution.objects.filter(scheduler=row, scheduled_at=self.now).values_list("pk", flat=True)
        for pk in new:
            line.new(pk)
        if not new:  # an earlier skipped execution counts it
            assert self._skips(row.pk) == before + 1
            assert line.policy == "skip"
            assert line.open or line.blocked is not None
        self.counts["occurrences"] += 1
        self.compare()

    def _skips(self, pk: int) -> int:
        return sum(SchedulerExecution.objects.filter(scheduler=pk, state="skipped").values_list("missed", flat=True))

    def run_now(self, number: int) -> None:
        self.pass_time(1)
        row = self.schedule(number)
        made = run_now(row, self.broker, by="ann")
        self.lines[row.pk].new(made.pk)
        self.counts["run now"] += 1
        self.compare()

    def cancel(self, number: int) -> None:
        """Cancel the execution of a schedule that is open, or the one that waits."""
        row = self.schedule(number)
        line = self.lines[row.pk]
        for pk in [*line.open, *([] if line.blocked is None else [line.blocked])][-1:]:
            if cancel(pk, "ann", self.now) == "cancelled":
                self.counts["cancelled"] += 1
                if pk == line.blocked:
                    line.blocked, line.over[pk] = None, "cancelled"
                else:
                    line.end(pk, "cancelled")
        self.compare()

    def republish(self, number: int) -> None:
        """Republish the failures of a schedule. One of them is let in if nothing is open, and nothing waits."""
        row = self.schedule(number)
        line = self.lines[row.pk]
        failed = [pk for pk, state in line.over.items() if state == "failed"]
        free = not line.open and line.blocked is None
        done = republish(failed, self.broker, "ann", self.now)
        assert len(done) == (1 if free and failed else 0)
        for pk in done:
            del line.over[pk]
            line.open[pk] = "waits"
            self.counts["republished"] += 1
        self.compare()

    def change_policy(self, number: int, policy: str) -> None:
        row = self.schedule(number)
        row.overlap = self.lines[row.pk].policy = policy
        row.save()
        self.compare()

    def pass_time(self, seconds: float) -> None:
        """Let time pass, in steps in which living consumers renew their leases."""
        while seconds > 0:
            self.now += timedelta(seconds=min(seconds, LEASE_SECONDS / 3))
            seconds -= LEASE_SECONDS / 3
            for consumer in self.consumers:
                leases.renew(consumer.runs, self.now, LEASE_SECONDS)

    def kill(self, number: int) -> None:
        """Kill a consumer. Another one takes its place. Its runs are lost when their leases are over."""
        self.counts["killed"] += len(self.consumers[number].runs)
        self.consumers[number] = Consumer()

    def sweep(self) -> None:
        self.pass_time(0.25)
        sweep(self.broker, self.now)
        self._see_lost_leases()
        self.compare()

    def _see_lost_leases(self) -> None:
        """A sweep may have settled runs of killed consumers."""
        alive = {run.execution_id for consumer in self.consumers for run in consumer.runs}
        for line in self.lines.values():
            for pk in [pk for pk, doing in line.open.items() if doing == "runs" and pk not in alive]:
                state = SchedulerExecution.objects.values_list("state", flat=True).get(pk=pk)
                self._note(line, pk, State(state))

    def turn(self, number: int, ends: dict[int, str]) -> None:
        """Settle runs of a consumer, and start others.

        Args:
            ends: maps the slots of the runs that have ended to their outcomes.
        """
        self.pass_time(0.25)
        consumer = self.consumers[number]
        over = [run for slot, run in enumerate(consumer.runs) if slot in ends]
        for slot, run in enumerate(consumer.runs):
            if slot in ends:
                run.outcome = OUTCOMES[ends[slot]]()
        for run in over:
            consumer.runs.remove(run)
        settled, _deliveries, arrivals = consumer.writer.write(over, SLOTS - len(consumer.runs), self.now)
        mark_stored(over)
        # What was started in this turn was let in before. What was let in by an end of this turn starts in a later one.
        for run, result in settled:
            if result.state is not None:
                self._note(self.lines[run.delivery.message.scheduler_id or 0], run.execution_id, result.state)
        for arrival in arrivals:
            if arrival.started:
                message = arrival.delivery.message
                config = consumer.configs.get(message)
                run = Running(arrival.delivery, config, OutputBuffer(1000, None), self.now, container_id())
                consumer.runs.append(run)
                self._see_release(self.lines[message.scheduler_id or 0])
                line = self.lines[message.scheduler_id or 0]
                assert message.execution_id in line.open, f"{message.execution_id} has started, but {line}"
                line.open[message.execution_id or 0] = "runs"
                self.counts["started"] += 1
        self.compare()

    def _note(self, line: Line, pk: int, state: State) -> None:
        if state in OPEN_STATES:
            line.open[pk] = "runs" if state is State.RUNNING else "waits"
        else:
            line.end(pk, state.value)
            self.counts[state.value] += 1

    def _see_release(self, line: Line) -> None:
        """If nothing is open, the one that waits may have been let in at any time since."""
        if line.blocked is not None and not line.open:
            state = SchedulerExecution.objects.values_list("state", flat=True).get(pk=line.blocked)
            if state != State.BLOCKED.value:
                line.let_in()
                self.counts["let in"] += 1

    def compare(self) -> None:
        """Compare each row with the model."""
        for pk, line in self.lines.items():
            self._see_release(line)
            rows = dict(SchedulerExecution.objects.filter(scheduler=pk).values_list("pk", "state"))
            shown = f"{line}, {rows}"
            assert line.blocked is None or rows.pop(line.blocked) == "blocked", shown
            for run, doing in line.open.items():
                state = rows.pop(run)
                assert state in LET_IN, f"{run} is {state}: {line}"
                assert (state == "running") == (doing == "runs"), f"{run} is {state}: {line}"
            assert len(line.open) <= 1, f"two at once: {line}"
            assert rows == line.over

    def finish(self) -> None:
        """Let all runs succeed. Each wait ends, and each occurrence has a row with a reason."""
        for _ in range(60):
            if not SchedulerExecution.objects.in_state(*OPEN_STATES).exists():
                break
            self.pass_time(2)
            self.sweep()
            for number, consumer in enumerate(self.consumers):
                self.turn(number, dict.fromkeys(range(len(consumer.runs)), "succeeds"))
        left = SchedulerExecution.objects.in_state(*OPEN_STATES).values_list("pk", "state", "reason")
        assert list(left) == [], "these wait for ever"
        rows = SchedulerExecution.objects.exclude(trigger="manual")
        ran = rows.exclude(state="skipped").count()
        assert ran + sum(rows.filter(state="skipped").values_list("missed", flat=True)) == self.occurrences
        assert not SchedulerExecution.objects.filter(state__in=("skipped", "cancelled"), reason="").exists()
