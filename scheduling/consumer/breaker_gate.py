"""Asks the circuit breaker of a handler whether a run may start, and tells it how runs have ended.

A handler without a breaker costs nothing. With one, a turn that starts its runs reads one row, and the ends of its runs
are written once a second, or at once if one of them has failed.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from datetime import datetime
from functools import partial
from typing import NamedTuple

from scheduling.consumer.running import Running
from scheduling.core.breaker import BreakerState, Circuit, CircuitBreaker, Ends
from scheduling.core.messages import TaskMessage
from scheduling.core.outcome import Crashed, Failed, FailedProbe, Failure, MemoryLimit, Outcome, Succeeded, TimedOut
from scheduling.core.pauses import LONGEST_WAIT
from scheduling.core.wait_sentences import WAS_PROBE
from scheduling.execution.breakers import change_circuit, read_circuit
from scheduling.execution.settle import Settled
from scheduling.handlers.run_config import RunConfig
from scheduling.logs import get_logger

log = get_logger(__name__)

WRITE_SECONDS = 1.0

FAILURES = (Failed, TimedOut, MemoryLimit, Crashed)


class Handler(NamedTuple):
    """A handler with a breaker."""

    type: str
    name: str

    @property
    def subject(self) -> str:
        """The handler in a sentence."""
        return f"the {self.type} {self.name!r}"


class BreakerGate:
    """The circuit breakers, as one consumer asks them."""

    def __init__(self) -> None:
        self._circuits: dict[Handler, Circuit] = {}
        self._read_at: datetime | None = None
        self._probes: set[tuple[int, int]] = set()
        """The executions and attempts that run here as probes."""
        self._ends: dict[Handler, tuple[CircuitBreaker, Ends]] = {}
        self._write_at = 0.0

    def is_closed(self, message: TaskMessage, config: RunConfig, now: datetime) -> bool:
        """Whether all runs of the handler may start. Each turn, which has its own `now`, reads a breaker once."""
        return config.breaker is None or self._circuit(_handler(message, config), now).state is BreakerState.CLOSED

    def reason_to_wait(self, message: TaskMessage, config: RunConfig, now: datetime) -> str:
        """Why a run must wait; empty if it starts now. Then it has used the place of a probe, or of its turn."""
        if config.breaker is None or self.is_closed(message, config, now):
            return ""
        handler, pk, rules = _handler(message, config), message.execution_id or 0, config.breaker
        known = self._circuits[handler]
        if known.lets_start(pk, rules, now):
            # Another process may have been faster, so the row decides while it is locked.
            known, after = change_circuit(
                *handler,
                lambda circuit: circuit.started(pk, now) if circuit.lets_start(pk, rules, now) else circuit,
                now,
            )
            self._circuits[handler] = after
            if known.lets_start(pk, rules, now):
                if after.state is BreakerState.OPEN:
                    self._probes.add((pk, message.attempt))
                    log.info("Probe for %s", handler.subject, extra={"execution": pk})
                return ""
        return known.sentence(handler.subject, rules)

    def give_back(self, message: TaskMessage, config: RunConfig, now: datetime) -> None:
        """Say that a run which needed not wait for its breaker does not start, because it has no place."""
        if config.breaker is None or self.is_closed(message, config, now):
            return
        handler, pk = _handler(message, config), message.execution_id or 0
        self._probes.discard((pk, message.attempt))
        _before, self._circuits[handler] = change_circuit(*handler, lambda circuit: circuit.given_back(pk), now)

    def outcome_of(self, run: Running, outcome: Outcome, now: datetime) -> Outcome:
        """The outcome of a run that is over: `FailedProbe` if a probe has shown that the dependency is down."""
        rules, message = run.config.breaker, run.delivery.message
        if rules is None or (run.execution_id, message.attempt) not in self._probes or not _is_failure(outcome):
            return outcome
        assert isinstance(outcome, FAILURES)  # noqa: S101
        handler = _handler(message, run.config)
        reason = WAS_PROBE.format(subject=handler.subject)
        return FailedProbe(outcome, reason, now, LONGEST_WAIT)

    def record(self, settled: Iterable[tuple[Running, Settled]], now: datetime) -> None:
        """Count how runs have ended. The rows of the runs are committed.

        If the database refuses it, these ends are not counted, and a probe is forgotten after an interval.
        """
        failed = False
        for run, result in settled:
            if run.config.breaker is None:
                continue
            try:
                failed |= self._count(run, run.config.breaker, result, now)
            except Exception as error:
                log.warning("The end of a probe is not recorded: %s", error, extra={"execution": run.execution_id})
        if self._ends and (failed or time.monotonic() >= self._write_at):
            self._write(now)

    def _count(self, run: Running, rules: CircuitBreaker, result: Settled, now: datetime) -> bool:
        """Count the end of one run. Returns whether it is a failure that was not a probe."""
        message, outcome = run.delivery.message, result.outcome
        handler, pk = _handler(message, run.config), run.execution_id
        failed, error = (
            _is_failure(outcome),
            f"{getattr(outcome, 'error_class', '')}: {getattr(outcome, 'message', '')}",
        )
        counts = result.state is not None and (failed or isinstance(outcome, Succeeded))
        if (pk, message.attempt) in self._probes:
            self._probes.discard((pk, message.attempt))

            def edit(circuit: Circuit) -> Circuit:
                if circuit.probe != pk:
                    return circuit
                if not counts:
                    return circuit.without_probe()
                return circuit.probe_ended(failed=failed, error=error if failed else "", rules=rules, now=now)

            self._changed(handler, *change_circuit(*handler, edit, now))
            return False
        if counts:
            ends = self._ends.get(handler, (rules, Ends()))[1]
            self._ends[handler] = rules, ends.plus(failed, error if failed else "")
        return counts and failed

    def _write(self, now: datetime) -> None:
        waiting, self._ends = self._ends, {}
        self._write_at = time.monotonic() + WRITE_SECONDS
        for handler, (rules, ends) in waiting.items():
            edit = partial(Circuit.recorded, ends=ends, rules=rules, now=now)
            try:
                before, after = change_circuit(*handler, edit, now)
            except Exception as error:
                log.warning("%s runs of %s are not counted: %s", ends.ended, handler.subject, error)
            else:
                self._changed(handler, before, after)

    def _changed(self, handler: Handler, before: Circuit, after: Circuit) -> None:
        self._circuits[handler] = after
        if after.state is not before.state:
            write = log.error if after.state is BreakerState.OPEN else log.warning
            write("Circuit breaker: %s", after.sentence(handler.subject))

    def _circuit(self, handler: Handler, now: datetime) -> Circuit:
        if self._read_at != now:
            self._circuits.clear()
            self._read_at = now
        if handler not in self._circuits:
            self._circuits[handler] = read_circuit(*handler)
        return self._circuits[handler]


def _handler(message: TaskMessage, config: RunConfig) -> Handler:
    return Handler(message.type, config.handler)


def _is_failure(outcome: Outcome | Failure) -> bool:
    """Whether the outcome says that something is down. An error that a retry would not help says nothing about it."""
    if isinstance(outcome, FailedProbe):
        return True
    if isinstance(outcome, Failed):
        return outcome.called and outcome.retryable
    return isinstance(outcome, FAILURES)
