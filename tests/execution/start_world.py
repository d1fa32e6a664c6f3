"""Producers and consumers in this process, with a simulated clock, and what is known of their runs beside tables."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Collection
from dataclasses import replace
from datetime import timedelta

import pytest

from scheduling.broker.database import DatabaseBroker
from scheduling.consumer import leases
from scheduling.consumer.acknowledge import Answers
from scheduling.consumer.due_retries import Rescue
from scheduling.consumer.output import OutputBuffer
from scheduling.consumer.output_store import mark_stored
from scheduling.consumer.row_writer import RowWriter
from scheduling.consumer.running import Running
from scheduling.core.breaker import BreakerState, Circuit
from scheduling.core.lifecycle import OPEN_STATES, WAITING, State
from scheduling.core.outcome import Crashed, Failed, Succeeded
from scheduling.core.queues import queue_of, turn, work_queues
from scheduling.core.start_model import OF_LIMIT, KeyUse, Rules, StartModel, Wait, WaitingRun
from scheduling.execution.breakers import read_circuit
from scheduling.execution.submit import Asked, submit
from scheduling.execution.work_pauses import pauses_now
from scheduling.handlers.run_config import RunConfigs
from scheduling.handlers.targets import handler_named
from scheduling.models import LoweredLimit, SchedulerExecution
from scheduling.processes.identity import container_id
from scheduling.producer.sweeps import sweep
from tests.apps.sample.modelled import NAMES
from tests.support import NOON

QUEUES = ("main", "mail")
SLOTS = 3
LEASE_SECONDS = 15
TICK = 0.25
"""Each turn takes so many seconds, so that no consumer uses what it has read in another turn."""

SHOWN = ("pk", "target_name", "params", "state", "queue", "wake_at", "deferred_at", "reason", "place__state")

Key = tuple[str, str, str]


class Consumer:
    """The rows of one consumer, and the runs in its slots."""

    def __init__(self) -> None:
        broker, self.configs = DatabaseBroker(), RunConfigs()
        rescue = Rescue(broker, work_queues(QUEUES))
        self.writer = RowWriter(broker, QUEUES, LEASE_SECONDS, self.configs, Answers(broker), rescue)
        self.runs: list[Running] = []


class World:
    """The site. `now` moves only by `pass_time` and by turns."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.now, self.broker = NOON, DatabaseBroker()
        patch.setattr(time, "monotonic", lambda: 1_000.0 + (self.now - NOON).total_seconds())
        self.consumers = [Consumer(), Consumer()]
        self.facts: dict[int, tuple[str, str]] = {}
        """Maps each execution to its handler and key."""
        self.lines: dict[tuple[str, str], list[int]] = defaultdict(list)
        """The executions that wait for a place of a handler and key, in the order in which they were put off."""
        self.starts: dict[tuple[str, str], list[float]] = defaultdict(list)
        self.ended: dict[int, int] = defaultdict(int)
        """How often each execution has succeeded."""
        self.probes: dict[str, float] = {}
        """When a handler has started its last run while its breaker was open."""
        self.counts: dict[str, int] = defaultdict(int)

    def add(self, handler: str, key: str, queue: str, priority: str) -> None:
        asked = Asked(handler, {"region": key}, queue=queue, priority=priority)
        ((pk, _new),) = submit([asked], self.broker, self.now)
        self.facts[pk] = handler, key if "keyed" in handler or "paced" in handler or "both" in handler else ""
        self.counts["runs"] += 1

    def pass_time(self, seconds: float) -> None:
        """Let time pass, in steps in which living consumers renew their leases."""
        while seconds > 0:
            self.now += timedelta(seconds=min(seconds, LEASE_SECONDS / 3))
            seconds -= LEASE_SECONDS / 3
            for consumer in self.consumers:
                leases.renew(consumer.runs, self.now, LEASE_SECONDS)

    def sweep(self) -> None:
        self.now += timedelta(seconds=TICK)
        sweep(self.broker, self.now)

    def kill(self, number: int) -> None:
        """Kill a consumer. Another one takes its place."""
        self.counts["killed"] += len(self.consumers[number].runs)
        self.consumers[number] = Consumer()

    def turn(self, number: int, ends: dict[int, bool]) -> bool:
        """Settle runs of a consumer, start others, and compare them with the model. Returns whether anything happened.

        Args:
            ends: maps the slots of the runs that have ended to whether they have succeeded.
        """
        self.now += timedelta(seconds=TICK)
        consumer = self.consumers[number]
        over = [run for slot, run in enumerate(consumer.runs) if slot in ends]
        for slot, run in enumerate(consumer.runs):
            if slot in ends:
                run.outcome = Succeeded() if ends[slot] else Failed("builtins.ConnectionError", "it is down")
        for run in over:
            consumer.runs.remove(run)
        model, due = self.model({run.execution_id for run in over}), self._due()
        settled, _deliveries, arrivals = consumer.writer.write(over, SLOTS - len(consumer.runs), self.now)
        mark_stored(over)
        for run, result in settled:  # a run whose lease has ended may have started elsewhere, and its end is refused
            self.ended[run.execution_id] += result.state is State.SUCCEEDED
        taken = [arrival.delivery.message.execution_id or 0 for arrival in arrivals]
        if not over:
            assert taken == due[: len(taken)], f"taken {taken}, but the order of the turns is {due}"
            assert len(taken) == min(len(due), SLOTS - len(consumer.runs)), "a run that is due waits beside a free slot"
        for arrival in sorted(arrivals, key=lambda arrival: arrival.delivery.message.execution_id or 0):
            pk = arrival.delivery.message.execution_id or 0
            model = self._compare(model, pk, arrival.started, arrival.deferred)
            if arrival.started:
                config = consumer.configs.get(arrival.delivery.message)
                output = OutputBuffer(1000, None)
                consumer.runs.append(Running(arrival.delivery, config, output, self.now, container_id()))
        return bool(over or arrivals)

    def _due(self) -> list[int]:
        rows = SchedulerExecution.objects.in_state(State.QUEUED, State.RETRYING).filter(wake_at__lte=self.now)
        columns = rows.values_list("error_class", "wake_at", "queue", "pk")
        order = sorted((error != Crashed.error_class, turn(at, work), pk) for error, at, work, pk in columns)
        return [pk for _crashed, _turn, pk in order]

    def _compare(self, model: StartModel, pk: int, started: bool, deferred: bool) -> StartModel:
        assert started or deferred, f"{pk} has neither started nor waits"
        run = next(run for run in model.waiting if run.execution == pk)
        wait, name, line = model.wait_of(run, self.now), self.facts[pk], self.lines[self.facts[pk]]
        if started:
            assert wait is None, f"{pk} {name} has started, but waits by the model: {wait}"
            self._record_start(model, pk, name)
            return model.started(run, self.now)
        # Older runs that wait keep a later one out until the free places are given, a moment later.
        assert wait is not None or line, f"{pk} {name} was put off, but may start by the model"
        self.counts[f"waited for {wait or Wait.LINE}"] += 1
        if wait is None or wait in OF_LIMIT:
            if pk not in line:
                line.append(pk)
        elif pk in line:
            line.remove(pk)
        return self._waits(model, run, wait)

    def _waits(self, model: StartModel, run: WaitingRun, wait: Wait | None) -> StartModel:
        """The model after a run was put off."""
        line, circuits = self.lines[self.facts[run.execution]], dict(model.circuits)
        kept = replace(run, in_line=line.index(run.execution) if run.execution in line else None)
        if wait in OF_LIMIT:  # a probe without a place is spent
            known = circuits[run.type, run.handler]
            circuits[run.type, run.handler] = known.started(run.execution, self.now).given_back(run.execution)
        waiting = tuple(kept if other.execution == run.execution else other for other in model.waiting)
        return replace(model, waiting=waiting, circuits=circuits)

    def _record_start(self, model: StartModel, pk: int, name: tuple[str, str]) -> None:
        self.counts["started"] += 1
        if pk in self.lines[name]:
            self.lines[name].remove(pk)
        self.starts[name].append(self.now.timestamp())
        circuit = model.circuits.get(("worker", name[0]), Circuit())
        if circuit.state is BreakerState.OPEN:
            breaker = model.rules["worker", name[0]].breaker
            assert breaker is not None
            since = max(circuit.since.timestamp() if circuit.since else 0.0, self.probes.get(name[0], 0.0))
            assert self.now.timestamp() - since >= breaker.probe_every - 1e-6, "two probes within an interval"
            self.probes[name[0]] = self.now.timestamp()
            self.counts["probes"] += 1

    def model(self, over: Collection[int] = ()) -> StartModel:
        """What decides now, from what was seen of the runs, and from the shared pauses and circuits.

        Args:
            over: executions that have ended, although their rows still run.
        """
        lowered = {row.name: (row.at_once, row.starts) for row in LoweredLimit.objects.all()}
        rules: dict[tuple[str, str], Rules] = {}
        for name in NAMES:
            handler = handler_named("worker", name)
            assert handler is not None
            limit = handler.limit.lowered(*lowered.get(name, (None, None))) if handler.limit else None
            rules["worker", name] = Rules(limit, handler.breaker)
        running: dict[Key, int] = defaultdict(int)
        rows = SchedulerExecution.objects.in_state(*OPEN_STATES).values_list(
            "pk", "state", "queue", "wake_at", "error_class"
        )
        waiting = []
        for pk, state, work, due, error in rows:
            handler_name, key = self.facts[pk]
            if state == State.RUNNING and pk not in over:
                running["worker", handler_name, key] += 1
            if state in WAITING:
                line = self.lines[handler_name, key]
                in_line = line.index(pk) if pk in line else None
                crashed = error == Crashed.error_class
                waiting.append(WaitingRun(pk, "worker", handler_name, work, due, key, in_line, crashed))
        names = {*self.starts, *((name, key) for _type, name, key in running)}
        uses = {("worker", *name): KeyUse(running["worker", *name], tuple(self.starts[name])) for name in names}
        circuits = {("worker", name): read_circuit("worker", name) for name in NAMES}
        return StartModel(rules, tuple(waiting), uses, tuple(pauses_now(self.now)), circuits)

    def missing(self) -> list[WaitingRun]:
        """The runs that may start by the model although slots are free, apart from retries that are not due yet."""
        model = self.model()
        retrying = SchedulerExecution.objects.in_state(State.RETRYING).filter(wake_at__gt=self.now)
        early = set(retrying.values_list("pk", flat=True))
        found = model.startable(work_queues(QUEUES), self.now)
        return [run for run in found if run.execution not in early and queue_of(run.work) in QUEUES]

    def settle_down(self, turns: int = 12) -> None:
        """Sweep and turn until nothing more starts. Then the model has nothing that may start beside a free slot.

        Each round takes less than a second. A pause or a span may end in any of them.
        """
        missing: list[WaitingRun] = []
        for _ in range(turns):
            self.sweep()
            # As between two sweeps of a producer, a consumer has many turns.
            busy = [self.turn(number, {}) for _ in range(4) for number in range(len(self.consumers))]
            missing = self.missing() if any(len(consumer.runs) < SLOTS for consumer in self.consumers) else []
            if not any(busy) and not missing:
                return
        rows = SchedulerExecution.objects.filter(pk__in=[run.execution for run in missing])
        assert not missing, f"at {self.now}, these wait beside a free slot: {list(rows.values(*SHOWN))}"
