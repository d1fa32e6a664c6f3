"""Looks up the handler, time limit and retry policy of an execution, because its message does not contain them.

These values are read from the current rows of the Scheduler and the target. So an operator's edit of a retry policy or
a time limit also applies to executions that already wait. Rows are remembered for two seconds. Otherwise a thousand
runs of one schedule would make a thousand queries.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeGuard

from django.contrib.auth.models import Group
from django.db.models import Model

from scheduling.conf import get_conf
from scheduling.core.batch import Batching
from scheduling.core.breaker import CircuitBreaker
from scheduling.core.chosen import EVERYTHING, Chosen
from scheduling.core.messages import TaskMessage
from scheduling.core.origin import Origin
from scheduling.core.overlap import waits_its_turn
from scheduling.core.pings import Kind
from scheduling.core.queues import STANDALONE
from scheduling.core.retry import RetryPolicy
from scheduling.core.run_limit import Limit
from scheduling.handlers.options import RetryOf
from scheduling.handlers.params_model import plain_defaults
from scheduling.handlers.registry import RECYCLE_AFTER
from scheduling.handlers.retry_policy import retry_policy
from scheduling.handlers.targets import handler_named, target_model
from scheduling.logs import get_logger
from scheduling.models import Scheduler
from scheduling.processes.database import is_away

log = get_logger(__name__)

KEEP_SECONDS = 2.0
SCHEDULER = "scheduler"
"""The kind of Scheduler rows. The kind of a target row is its target type."""
GROUP = "group"
"""The kind of group rows."""

SERVICE_TYPE = "worker"
"""Only a worker can be a service."""

MOST_SCHEDULERS = 20_000
"""If more Scheduler rows than this are remembered, all of them are forgotten, so that they do not fill the memory."""


@dataclass(frozen=True)
class RunConfig:
    """How to run one execution. `time_limit` is in seconds; 0 means no limit."""

    handler: str
    target_params: dict[str, Any] = field(default_factory=dict)
    policy: RetryPolicy = field(default_factory=RetryPolicy)
    time_limit: int = 0
    fresh: bool = True
    recycle_after: int = RECYCLE_AFTER
    leaves_processes: bool = False
    memory_limit: float | None = None
    user_id: int | None = None
    group: str | None = None
    language: str = ""
    unknown: bool = False
    """Whether this process does not know the handler that the target names."""
    breaker: CircuitBreaker | None = None
    """When the runs of the handler wait. None for a service, which waits on its own."""
    limit: Limit | None = None
    """How many runs of the handler there may be at once, or start within a time. None for a service."""
    batch: Batching | None = None
    """How runs are gathered that one call gets. None for a service, which is called by itself."""
    default_params: dict[str, Any] = field(default_factory=dict)
    """The defaults of the params model; only filled for a handler with a limit."""
    retry_of: RetryOf | None = None
    """Gives the retry policy of one run, from its params."""
    service: bool = False
    """Whether the run is started again however it ends."""
    pings: tuple[Kind, ...] = ()
    """The monitors that are told about the run."""
    waited_for: bool = False
    """Whether another execution of the schedule may wait until this one is over."""
    pauses_schedule: bool = False
    """Whether failures in a row pause the schedule."""


class RunConfigs:
    """Looks up run configurations. Rows are remembered for `KEEP_SECONDS`.

    Args:
        queues: the queues of all executions that are looked up; empty if they may be in any queue. An execution of
            another queue than `standalone` is never a service: its schedule has become one since.
        chosen: the handlers that are run.
    """

    def __init__(
        self,
        monotonic: Callable[[], float] = time.monotonic,
        queues: Sequence[str] = (),
        chosen: Chosen = EVERYTHING,
    ) -> None:
        self.chosen = chosen
        self._monotonic, self._may_serve = monotonic, not queues or STANDALONE in queues
        self._rows: dict[str, dict[int, tuple[float, Any]]] = defaultdict(dict)
        """Maps kind and primary key to a pair: when the row was read, and the row (None if it could not be read)."""
        self._made: dict[Origin, tuple[float, RunConfig]] = {}
        """Maps an origin to a pair: until when the configuration may be used, and the configuration."""

    def get(self, message: TaskMessage) -> RunConfig:
        """The run configuration of one message. If the target's row or handler is missing, the run will fail."""
        key = _key(message)
        until, config = self._made.get(key, (0.0, None))
        if config is None or self._monotonic() >= until:
            self.load([message])
            config = self._make(message)
            if len(self._made) > MOST_SCHEDULERS:
                self._made.clear()
            self._made[key] = self._read_at(message) + KEEP_SECONDS, config
        return config if config.retry_of is None else _with_own_policy(config, message)

    def _read_at(self, message: TaskMessage) -> float:
        """When the oldest of the rows was read."""
        others = ((SCHEDULER, message.scheduler_id), (GROUP, message.group_id))
        read = [self._rows[kind][key][0] for kind, key in others if key]
        return min([self._rows[message.type][message.id][0], *read])

    def _make(self, message: TaskMessage) -> RunConfig:
        target = self._rows[message.type][message.id][1]
        scheduler = self._rows[SCHEDULER][message.scheduler_id][1] if message.scheduler_id else None
        group = self._rows[GROUP][message.group_id][1] if message.group_id else None
        name = target.handler_name if target is not None else ""
        handler = handler_named(message.type, name)
        given = [row.time_limit for row in (scheduler, handler) if row is not None]
        limits = [seconds for seconds in given if _is_limit(seconds)]
        stays = scheduler is not None and scheduler.stay_alive and message.type == SERVICE_TYPE
        service = stays and self._may_serve
        limit = handler.limit if handler is not None and not service else None
        usual = 0 if service else get_conf().time_limit_seconds  # a service should never end
        return RunConfig(
            handler=name,
            target_params=dict(target.params) if target is not None and isinstance(target.params, dict) else {},
            policy=retry_policy(handler, scheduler),
            time_limit=limits[0] if limits else usual,
            fresh=handler is None or handler.gets_new_child,
            recycle_after=handler.recycle_after if handler is not None else RECYCLE_AFTER,
            leaves_processes=handler is not None and handler.leaves_processes,
            memory_limit=handler.memory_limit if handler is not None else None,
            user_id=scheduler.user_id if scheduler is not None else None,
            group=group.name if group is not None else None,
            language=scheduler.language if scheduler is not None else "",
            unknown=bool(name) and handler is None,
            breaker=handler.breaker if handler is not None and not service else None,
            limit=limit,
            batch=handler.batch if handler is not None and not service else None,
            default_params=plain_defaults(handler.params) if limit is not None and handler is not None else {},
            retry_of=handler.retry_of if handler is not None else None,
            service=service,
            pings=_pings(scheduler) if not stays else (),
            waited_for=scheduler is not None and waits_its_turn(scheduler.overlap, scheduler.stay_alive),
            pauses_schedule=scheduler is not None and not stays and scheduler.pause_after_failures is not None,
        )

    def prepare(self, messages: Sequence[TaskMessage]) -> None:
        """Load the rows of these messages, and raise an error if a run cannot be configured.

        Raises:
            Exception: plain SQL has written a value that cannot be used.
        """
        now = self._monotonic()
        new = [message for message in messages if self._made.get(_key(message), (0.0, None))[0] <= now]
        self.load(new)
        for message in new:
            self.get(message)

    def load(self, messages: Iterable[TaskMessage]) -> None:
        """Read and remember the rows for these messages, with one query for each kind of row."""
        if len(self._rows[SCHEDULER]) > MOST_SCHEDULERS:
            self._rows[SCHEDULER].clear()
        now, wanted = self._monotonic(), defaultdict[str, set[int]](set)
        for message in messages:
            wanted[message.type].add(message.id)
            if message.scheduler_id:
                wanted[SCHEDULER].add(message.scheduler_id)
            if message.group_id:
                wanted[GROUP].add(message.group_id)
        for kind, ids in wanted.items():
            self._fetch(kind, ids, now)

    def _fetch(self, kind: str, ids: set[int], now: float) -> None:
        rows = self._rows[kind]
        missing = [pk for pk in ids if pk not in rows or now - rows[pk][0] >= KEEP_SECONDS]
        if missing:
            found = _rows_of(kind, missing)
            rows.update({pk: (now, found.get(pk)) for pk in missing})


def _with_own_policy(config: RunConfig, message: TaskMessage) -> RunConfig:
    policy = config.retry_of(message.params) if config.retry_of is not None else None
    return config if policy is None else replace(config, policy=policy)


def _key(message: TaskMessage) -> Origin:
    return Origin(message.type, message.id, message.scheduler_id, message.group_id)


def _pings(scheduler: Scheduler | None) -> tuple[Kind, ...]:
    """The monitors of a schedule. The run of a service never ends, so no monitor is told about it."""
    if scheduler is None:
        return ()
    kinds = {Kind.HEALTHCHECKS: bool(scheduler.ping_url), Kind.SENTRY: get_conf().sentry_monitors}
    return tuple(kind for kind, is_told in kinds.items() if is_told)


def _is_limit(seconds: int | None) -> TypeGuard[int]:
    """Whether a time limit can be used. Plain SQL can write any value, and SQLite stores any type."""
    return type(seconds) is int and seconds >= 0


def _model_of(kind: str) -> type[Model]:
    own: dict[str, type[Model]] = {SCHEDULER: Scheduler, GROUP: Group}
    return own[kind] if kind in own else target_model(kind)


def _rows_of(kind: str, keys: list[int]) -> dict[int, Any]:
    """The rows by primary key. A row that does not exist or cannot be read is left out, so its runs fail."""
    try:
        return _model_of(kind)._default_manager.in_bulk(keys)
    except LookupError:  # plain SQL wrote a type that does not exist
        return {}
    except Exception as error:
        if is_away(error):
            raise
        if len(keys) == 1:
            log.error("A row of %s cannot be read: %s", kind, error, extra={"id": keys[0]})
            return {}
    return {pk: row for key in keys for pk, row in _rows_of(kind, [key]).items()}
