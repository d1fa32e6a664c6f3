"""Brief: what beside the message is needed to run an execution: its code, limits and policy.

Read from the Scheduler's and the target's rows as they are now, so that an operator's edit of a
retry policy or a time limit holds for runs that wait; kept for two seconds, so that a thousand
runs of one schedule do not ask a thousand times.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from scheduling.conf import get_conf
from scheduling.core.messages import TaskMessage
from scheduling.core.retry import RetryPolicy, RetryPolicyInvalid
from scheduling.models import Scheduler
from scheduling.registry import RECYCLE_AFTER, UnknownHandler, find
from scheduling.targets import target_model

KEEP_SECONDS = 2.0


@dataclass(frozen=True)
class Brief:
    """How to run one execution. `time_limit` is in seconds, 0 for none."""

    handler: str
    target_params: dict[str, Any] = field(default_factory=dict)
    policy: RetryPolicy = field(default_factory=RetryPolicy)
    time_limit: int = 0
    fresh: bool = True
    recycle_after: int = RECYCLE_AFTER
    user_id: int | None = None
    language: str = ""


class Briefs:
    """Looks briefs up, and remembers rows for `KEEP_SECONDS`."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._schedulers: dict[int, tuple[float, Scheduler | None]] = {}
        self._targets: dict[tuple[str, int], tuple[float, Any]] = {}

    def get(self, message: TaskMessage) -> Brief:
        """The brief of one message; a missing row or missing code gives a brief that will fail and say so."""
        self.load([message])
        target = self._targets[message.type, message.id][1]
        scheduler = self._schedulers[message.scheduler_id][1] if message.scheduler_id else None
        conf = get_conf()
        policy, time_limit = conf.retry, conf.time_limit_seconds
        name = target.handler_name if target is not None else ""
        fresh, recycle_after = True, RECYCLE_AFTER
        try:
            handler = find(message.type, name)
        except UnknownHandler:
            pass
        else:
            policy = handler.retry or policy
            time_limit = handler.time_limit if handler.time_limit is not None else time_limit
            fresh, recycle_after = handler.fresh, handler.recycle_after
        if scheduler is not None:
            with suppress(RetryPolicyInvalid):  # plain SQL wrote it; the inherited policy stands in
                policy = scheduler.retry_policy(policy)
            if scheduler.time_limit is not None:
                time_limit = scheduler.time_limit
        return Brief(
            handler=name,
            target_params=dict(target.params) if target is not None and isinstance(target.params, dict) else {},
            policy=policy,
            time_limit=time_limit,
            fresh=fresh,
            recycle_after=recycle_after,
            user_id=scheduler.user_id if scheduler is not None else None,
            language=scheduler.language if scheduler is not None else "",
        )

    def load(self, messages: Iterable[TaskMessage]) -> None:
        """Fetch the rows that are not remembered, a query for each kind of row."""
        now = self._monotonic()
        if len(self._schedulers) > 20_000:  # a million schedules must not end up in memory
            self._schedulers.clear()
        schedulers: set[int] = set()
        targets: dict[str, set[int]] = {}
        for message in messages:
            if message.scheduler_id and not self._fresh(self._schedulers.get(message.scheduler_id), now):
                schedulers.add(message.scheduler_id)
            if not self._fresh(self._targets.get((message.type, message.id)), now):
                targets.setdefault(message.type, set()).add(message.id)
        if schedulers:
            found: dict[int, Any] = Scheduler.objects.in_bulk(schedulers)
            for pk in schedulers:
                self._schedulers[pk] = (now, found.get(pk))
        for type_, ids in targets.items():
            found = target_model(type_)._default_manager.in_bulk(ids)
            for pk in ids:
                self._targets[type_, pk] = (now, found.get(pk))

    @staticmethod
    def _fresh(entry: tuple[float, Any] | None, now: float) -> bool:
        return entry is not None and now - entry[0] < KEEP_SECONDS
