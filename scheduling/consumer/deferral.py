"""Puts off runs: those that are paused (`core.pauses`), those for which another consumer has the code
(`core.deferral`), and those that wait for a circuit breaker (`core.breaker`) or a place
(`core.run_limit`).

A run whose handler is unknown here is put off before its start. Whether params are refused shows only in the child, so
such a run is put off when its attempt is settled. Params that the code here does not know would be left out. So a run
that has some waits for a minute before its start, if a consumer with another version of the handler is alive. Runs of
known handlers with valid params cost no query, except the one that reads the pauses of the next second.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from datetime import datetime
from itertools import starmap
from typing import Any, NamedTuple

from django.db.models import QuerySet

from scheduling.broker import Delivery
from scheduling.consumer.breaker_gate import BreakerGate
from scheduling.consumer.peers import Peers
from scheduling.consumer.place_gate import PlaceGate, Wish
from scheduling.consumer.running import Running
from scheduling.core.chosen import reason_for_left_out
from scheduling.core.deferral import DEPLOY_GRACE, offered_after, reason_for_refused, reason_for_unknown
from scheduling.core.lifecycle import WAITING
from scheduling.core.messages import TaskMessage
from scheduling.core.outcome import Deferred, Failed, Outcome
from scheduling.core.pauses import LONGEST_WAIT, WorkPause
from scheduling.execution.place_rows import Place
from scheduling.execution.put_off import Wait, put_off
from scheduling.execution.work_pauses import CurrentPauses
from scheduling.handlers.contract import contract
from scheduling.handlers.params_model import has_other_names
from scheduling.handlers.run_config import RunConfig, RunConfigs
from scheduling.handlers.targets import handler_named
from scheduling.logs import get_logger
from scheduling.models import Attempt, KnownHandler, Process, SchedulerExecution
from scheduling.models.prepared_over import PreparedOver
from scheduling.processes.identity import container_id

log = get_logger(__name__)

REMEMBERED_SECONDS = 300.0
MOST_REMEMBERED = 10_000


class Asked(NamedTuple):
    """A delivery whose attempt may have to wait.

    Args:
        pk: the execution.
        waits: whether it waits whatever a breaker or a limit says.
        has_other_params: whether it has params that the code here would leave out.
    """

    pk: int
    message: TaskMessage
    config: RunConfig
    pause: WorkPause | None
    waits: bool
    has_other_params: bool


class WaitingRow(NamedTuple):
    """What the row of an attempt says, which is about to start."""

    pk: int
    attempt: int
    execution_key: str
    type: str
    target_id: int | None
    state: str
    deferred_at: datetime | None
    queue: str
    start_by: datetime | None
    place__limit: int | None
    place__state: str | None
    place__attempt: int | None

    @property
    def place(self) -> Place | None:
        """The place of a limited handler that the execution has, or waits for."""
        if self.place__limit is None or self.place__state is None:
            return None
        return Place(self.place__limit, self.place__state, self.place__attempt)

    def may_start(self, now: datetime) -> bool:
        """Whether its start deadline has not passed. Otherwise the start refuses it, and it must use no place."""
        return self.attempt > 0 or self.start_by is None or self.start_by > now

    def is_meant_by(self, message: TaskMessage) -> bool:
        """Whether the message asks for the next attempt of this row."""
        own = (self.attempt + 1, self.execution_key, self.type, self.target_id)
        return own == (message.attempt, message.execution_key, message.type, message.id)


def _waiting_rows(keys: Sequence[int]) -> QuerySet[SchedulerExecution, Any]:
    rows = SchedulerExecution.objects.in_state(*WAITING).filter(pk__in=keys).order_by("pk")
    return rows.values_list(*WaitingRow._fields)


_ROWS = PreparedOver(_waiting_rows, int)


def _subject(message: TaskMessage, handler: str) -> str:
    return f"the {message.type} {handler!r}"


def _has_other_params(message: TaskMessage, config: RunConfig) -> bool:
    handler = None if config.unknown else handler_named(message.type, config.handler)
    if handler is None or handler.params.model_config.get("extra") == "allow":
        return False
    layers = [layer for layer in (config.target_params, message.params) if isinstance(layer, dict)]
    return has_other_names(handler.params, *layers)


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
        self._peers = Peers()
        self._refused: dict[int, float] = {}
        """Maps an execution whose params this consumer has refused to the time when it is forgotten (monotonic)."""

    def defer(self, deliveries: Sequence[Delivery], now: datetime) -> set[int]:
        """Put off the attempts of deliveries that are not to start now, or not here. Returns their executions."""
        asked = [asked for delivery in deliveries if (asked := self._asked(delivery, now)) is not None]
        if not asked:
            return set()
        rows = self._rows_of(asked)
        # A copy, or a message with other values than its row, is not put off: the start decides.
        found = [(one, row) for one in asked if (row := rows.get(one.pk)) is not None and row.is_meant_by(one.message)]
        found = [(one, row) for one, row in found if row.may_start(now)]
        waits: dict[int, tuple[str, datetime]] = {}
        stopped: list[Wish] = []
        free: list[Wish] = []
        for one, row in found:
            reason, offered_at = self._why(one, row.queue, min(row.deferred_at or now, now), now)
            # The breaker and the places come last, because a run that need not wait has used them then.
            if not reason and (reason := self.breakers.reason_to_wait(one.message, one.config, now)):
                offered_at = now + LONGEST_WAIT
            if reason:
                waits[one.pk] = reason, offered_at
                if one.pause is not None or not one.waits:
                    stopped.append(Wish(one.message, one.config, row.place))
            else:
                free.append(Wish(one.message, one.config, row.place))
        waits |= {pk: (reason, now + LONGEST_WAIT) for pk, reason in self._without_place(free, stopped, now).items()}
        return self._put_off([(one, row, *waits[one.pk]) for one, row in found if one.pk in waits], now)

    def _without_place(self, free: Sequence[Wish], stopped: Sequence[Wish], now: datetime) -> dict[int, str]:
        """Why runs wait for a place, by execution.

        Args:
            free: the runs that nothing else stops.
            stopped: the runs that a pause or a breaker stops.
        """
        if self.places is None:
            return {}
        self.places.leave(stopped, now)
        found = {pk: reason for pk, reason in self.places.reasons_to_wait(free, now).items() if reason}
        for wish in free:
            if wish.message.execution_id in found:
                self.breakers.give_back(wish.message, wish.config, now)
        return found

    def _asked(self, delivery: Delivery, now: datetime) -> Asked | None:
        """What is asked of the row of a delivery; None if nothing can put its attempt off."""
        message = delivery.message
        config = self._configs.get(message)
        pk = message.execution_id
        pause = self._pauses.find(message.type, config.handler, delivery.queue, now)
        others = _has_other_params(message, config)
        waits = pause is not None or self._is_left_out(config) or config.unknown or pk in self._refused or others
        is_free = config.limit is None and self.breakers.is_closed(message, config, now)
        return None if pk is None or (is_free and not waits) else Asked(pk, message, config, pause, waits, others)

    def _rows_of(self, asked: Sequence[Asked]) -> dict[int, WaitingRow]:
        rows = starmap(WaitingRow, _ROWS.rows(sorted({one.pk for one in asked})))
        return {row.pk: row for row in rows}

    def _put_off(self, asked: Sequence[tuple[Asked, WaitingRow, str, datetime]], now: datetime) -> set[int]:
        waits = [
            Wait(one.pk, row.attempt, reason, offered_at, min(row.deferred_at or now, now))
            for one, row, reason, offered_at in asked
        ]
        moved = put_off(waits, now, embedded=self._embedded)
        for one, row, reason, _offered_at in asked:
            if one.pk in moved and row.deferred_at is None:
                level = logging.INFO if one.pause is not None or not one.waits else logging.WARNING
                log.log(level, "Run put off: %s", reason, extra={"execution": one.pk})
        return moved

    def _why(self, one: Asked, queue: str, asked_at: datetime, now: datetime) -> tuple[str, datetime]:
        """Why an attempt waits, apart from a breaker and a limit, and until when. The reason may be empty."""
        message, name = one.message, one.config.handler
        offered_at = now + offered_after(asked_at, now)
        if one.pause is not None:
            return one.pause.sentence(), one.pause.offered_at(now, one.pk)
        if self._is_left_out(one.config):
            reason = reason_for_left_out(_subject(message, name), container_id(), self._configs.chosen)
            return reason, offered_at
        if not one.config.unknown and one.pk not in self._refused:
            may_wait = one.has_other_params and now - asked_at < DEPLOY_GRACE
            reason = self._reason(message, name, queue, asked_at, now, unknown=False) if may_wait else ""
            return reason, offered_at
        return self._reason(message, name, queue, asked_at, now, unknown=one.config.unknown), offered_at

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
        peers = list(self._peers.knowing(message.type, name, queue, now))
        if unknown:
            # A retry whose handler is gone has its delays by the retry policy.
            since = asked_at if message.retry_count == 0 else now - DEPLOY_GRACE
            return reason_for_unknown(subject, container_id(), peers, since, now)
        return reason_for_refused(subject, container_id(), self._refusing(message, name), peers, asked_at, now)

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
