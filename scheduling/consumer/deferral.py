"""Puts off runs: those that are paused (`core.pauses`), those for which another consumer has the code
(`core.deferral`), and those that wait for a circuit breaker (`core.breaker`) or a place
(`core.run_limit`).

A run whose handler is unknown here is put off before its start. Whether params are refused shows only in the child, so
such a run is put off when its attempt is settled. Runs of known handlers with valid params cost no query, except the
one that reads the pauses of the next second.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from datetime import datetime
from typing import Any, NamedTuple

from django.db.models import Value
from django.db.models.functions import Coalesce

from scheduling.broker import Delivery
from scheduling.consumer.breaker_gate import BreakerGate
from scheduling.consumer.place_gate import PlaceGate
from scheduling.consumer.running import Running
from scheduling.core.chosen import reason_for_left_out
from scheduling.core.deferral import DEPLOY_GRACE, Peer, offered_after, reason_for_refused, reason_for_unknown
from scheduling.core.lifecycle import WAITING, State
from scheduling.core.messages import TaskMessage
from scheduling.core.outcome import Deferred, Failed, Outcome
from scheduling.core.pauses import LONGEST_WAIT, WorkPause
from scheduling.execution.work_pauses import CurrentPauses
from scheduling.handlers.contract import contract
from scheduling.handlers.run_config import RunConfig, RunConfigs
from scheduling.handlers.targets import handler_named
from scheduling.logs import get_logger
from scheduling.models import Attempt, KnownHandler, Process, SchedulerExecution
from scheduling.models.process import oldest_beat
from scheduling.processes.database import is_away
from scheduling.processes.identity import container_id

log = get_logger(__name__)

KEEP_SECONDS = 1.0
"""How long the list of the other processes is used, so that a thousand runs do not make a thousand queries."""

REMEMBERED_SECONDS = 300.0
MOST_REMEMBERED = 10_000


class Other(NamedTuple):
    """A process beside this one, alive or not."""

    row: Process
    alive: bool
    handler_set: int


def _subject(message: TaskMessage, handler: str) -> str:
    return f"the {message.type} {handler!r}"


class Deferral:
    """Puts runs off.

    Args:
        places: knows the limits of handlers. None: all runs have a place.
        embedded: whether the executions table is the queue.
    """

    def __init__(self, configs: RunConfigs, places: PlaceGate | None = None, *, embedded: bool) -> None:
        self._configs, self._embedded = configs, embedded
        self.breakers, self.places = BreakerGate(), places
        self._pauses = CurrentPauses()
        self._others: list[Other] = []
        self._others_until = 0.0
        self._contracts: dict[tuple[str, str, int], str | None] = {}
        """Maps a type, a name and a set of handlers to the contract. A set never changes."""
        self._refused: dict[int, float] = {}
        """Maps an execution whose params this consumer has refused to the time when it is forgotten (monotonic)."""

    def defer(self, delivery: Delivery, now: datetime) -> bool:
        """Put the attempt of a delivery off if it is not to start now, or not here. Returns whether it was put off."""
        message = delivery.message
        config = self._configs.get(message)
        pk = message.execution_id
        pause = self._pauses.find(message.type, config.handler, delivery.queue, now)
        waits = pause is not None or self._is_left_out(config) or config.unknown or pk in self._refused
        is_free = config.limit is None and self.breakers.is_closed(message, config, now)
        if pk is None or (is_free and not waits):
            return False
        rows = SchedulerExecution.objects.in_state(*WAITING).filter(
            pk=pk, attempt=message.attempt - 1, execution_key=message.execution_key,
            type=message.type, target_id=message.id,
        )  # fmt: skip
        found = rows.values_list("deferred_at", "queue").first()
        if found is None:
            return False  # a copy, or a message with other values than its row: the start decides
        asked_at = min(found[0] or now, now)
        reason, offered_at = self._why(delivery, config, found[1], asked_at, now, pause)
        if not reason:
            # Last, because a run that need not wait has used a place then.
            reason = self.breakers.reason_to_wait(message, config, now)
            if not reason and self.places is not None:
                reason = self.places.reason_to_wait(message, config, now)
            offered_at = now + LONGEST_WAIT
        if not reason:
            return False
        to = State.QUEUED if self._embedded else State.CLAIMED
        # `published_at` says that the message has arrived: no late confirm of it may move the row.
        columns: dict[str, Any] = {"wake_at": offered_at, "deferred_at": asked_at}
        columns["published_at"] = Coalesce("published_at", Value(now))
        columns["reason"] = reason
        moved = rows.filter(state=to.value).update(**columns) or rows.move(WAITING - {to}, to, **columns)
        if moved and found[0] is None:
            expected = pause is not None or not waits
            log.log(logging.INFO if expected else logging.WARNING, "Run put off: %s", reason, extra={"execution": pk})
        return bool(moved)

    def _why(
        self,
        delivery: Delivery,
        config: RunConfig,
        queue: str,
        asked_at: datetime,
        now: datetime,
        pause: WorkPause | None,
    ) -> tuple[str, datetime]:
        """Why the attempt of a delivery waits, apart from a breaker, and until when. The reason may be empty."""
        message, name = delivery.message, config.handler
        offered_at = now + offered_after(asked_at, now)
        if pause is not None:
            return pause.sentence(), pause.offered_at(now, message.execution_id or 0)
        if self._is_left_out(config):
            reason = reason_for_left_out(_subject(message, name), container_id(), self._configs.chosen)
            return reason, offered_at
        if not config.unknown and message.execution_id not in self._refused:
            return "", offered_at
        return self._reason(message, name, queue, asked_at, now, unknown=config.unknown), offered_at

    def _is_left_out(self, config: RunConfig) -> bool:
        return not config.unknown and config.handler not in self._configs.chosen

    def outcome_of(self, run: Running, now: datetime) -> Outcome:
        """The outcome of a run that is over. `Deferred` if its handler was not called and other code may call it."""
        outcome = run.outcome
        assert outcome is not None  # noqa: S101 - the run is over
        if not isinstance(outcome, Failed) or outcome.called:
            return self.breakers.outcome_of(run, outcome, now)
        rows = SchedulerExecution.objects.filter(pk=run.execution_id).values_list("deferred_at", "queue")
        deferred_at, queue = rows.first() or (None, run.delivery.queue)
        asked_at = min(deferred_at or now, now)
        message, name = run.delivery.message, run.config.handler
        unknown = handler_named(message.type, name) is None
        reason = self._reason(message, name, queue, asked_at, now, unknown=unknown)
        if not reason:
            return outcome
        self._remember(run.execution_id)
        return Deferred(
            reason=reason, asked_at=asked_at, wait=offered_after(asked_at, now), exit_code=outcome.exit_code
        )

    def _reason(
        self, message: TaskMessage, name: str, queue: str, asked_at: datetime, now: datetime, *, unknown: bool
    ) -> str:
        subject = _subject(message, name)
        peers = list(self._peers(message.type, name, queue, now))
        if unknown:
            # A retry whose handler is gone has its delays by the retry policy.
            since = asked_at if message.retry_count == 0 else now - DEPLOY_GRACE
            return reason_for_unknown(subject, container_id(), peers, since, now)
        return reason_for_refused(subject, container_id(), self._refusing(message, name), peers, asked_at, now)

    def _peers(self, type_: str, name: str, queue: str, now: datetime) -> Iterator[Peer]:
        """The other processes that know a handler, or knew it before they ended.

        Args:
            queue: the work queue of the run.
        """
        others = self._present(now)
        missing = {other.handler_set for other in others if (type_, name, other.handler_set) not in self._contracts}
        if missing:
            known = KnownHandler.objects.filter(type=type_, name=name, handler_set__in=missing)
            contracts = dict(known.values_list("handler_set", "contract"))
            self._contracts |= {(type_, name, pk): contracts.get(pk) for pk in missing}
        for other in others:
            own = self._contracts[type_, name, other.handler_set]
            if own is not None:
                row = other.row
                consumes = row.kind == Process.Kind.CONSUMER and row.serves(queue)
                yield Peer(row.container_id, consumes, other.alive, row.heartbeat_at, own)

    def _present(self, now: datetime) -> list[Other]:
        """The other processes with a heartbeat within the last `DEPLOY_GRACE`."""
        if time.monotonic() >= self._others_until:
            try:
                self._others = self._read(now)
            except Exception as error:
                if is_away(error):
                    raise
                self._others = []  # plain SQL has written a value that cannot be read
                log.warning("The other processes cannot be read: %s", error)
            self._others_until = time.monotonic() + KEEP_SECONDS
        return self._others

    def _read(self, now: datetime) -> list[Other]:
        alive_since = oldest_beat(now)
        recent = Process.objects.filter(
            heartbeat_at__gte=min(now - DEPLOY_GRACE, alive_since), handler_set__isnull=False
        )
        return [
            Other(row, row.is_alive(now), row.known_set)
            for row in recent.exclude(container_id=container_id())
            if row.known_set is not None
        ]

    def _refusing(self, message: TaskMessage, name: str) -> set[str]:
        """The contracts that have refused the run's params."""
        handler = handler_named(message.type, name)
        attempts = Attempt.objects.filter(execution=message.execution_id, error_class=Deferred.error_class)
        sets = Process.objects.filter(container_id__in=attempts.values_list("consumer", flat=True))
        known = KnownHandler.objects.filter(type=message.type, name=name, handler_set__in=sets.values("handler_set"))
        return {*known.values_list("contract", flat=True), *([contract(handler)] if handler is not None else [])}

    def _remember(self, execution_id: int) -> None:
        now = time.monotonic()
        self._refused = {pk: until for pk, until in self._refused.items() if until > now}
        self._refused[execution_id] = now + REMEMBERED_SECONDS
        if len(self._refused) > MOST_REMEMBERED:
            del self._refused[next(iter(self._refused))]
