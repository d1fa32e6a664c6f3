"""Makes the shapes of rows. No query is made for a single row of a list."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from typing import Any, TypeVar

from django.db import connection, transaction
from django.db.models import Model, QuerySet
from django.utils import timezone as clock
from django.utils.translation import gettext as _

from scheduling.core.headers import usable
from scheduling.core.json_bounds import problem
from scheduling.core.lifecycle import OPEN_STATES, WAITING, State
from scheduling.core.queues import priority_of, queue_of
from scheduling.core.targets import TARGET_KINDS, TARGETS
from scheduling.core.text import visible_text
from scheduling.execution.results import result_of
from scheduling.handlers.secret_params import masked
from scheduling.handlers.targets import handler_of, handler_of_execution
from scheduling.models import Artefact, Attempt, Scheduler, SchedulerExecution
from scheduling.models.after import AFTER_COLUMNS
from scheduling.models.health import health_of, last_results, with_health
from scheduling.models.own_timing import TIMING_COLUMNS
from scheduling.models.run_bounds import RUN_BOUNDS
from scheduling.operations import artefacts, executions, predecessors
from scheduling.operations.actor import Actor
from scheduling.operations.execution_shapes import ArtefactShape, AttemptShape, ExecutionDetail, ExecutionShape
from scheduling.operations.refused import Code, Refused
from scheduling.operations.schedules import version, with_related
from scheduling.operations.shapes import RunShape, ScheduleShape, TargetShape, UnusableShape
from scheduling.pings import address as ping_url
from scheduling.processes.database import is_away

ERROR_SHOWN = 1_000
MOST_ATTEMPTS = 200
"""The newest attempts of an execution that are shaped."""
MOST_ARTEFACTS = 1_000

Row = TypeVar("Row", bound=Model)
Made = TypeVar("Made")

_OPEN = {str(state) for state in OPEN_STATES}
_WAITING = {str(state) for state in WAITING}
_COPIED = (
    "id", "name", "description", "schedule", "date_time", "timezone", "status", "pause_reason", "paused_at",
    "paused_by", "overlap", "stay_alive", *AFTER_COLUMNS, *TIMING_COLUMNS, "next_nominal_at", "queue", "priority",
    "time_limit", "language", "max_retries",
    "retry_delay_ms", "retry_multiplier", "retry_max_delay_ms", "retry_jitter", "keep_success_days",
    "keep_failed_days", "keep_output_days", "keep_count", *RUN_BOUNDS, "paused_for", "source_file", "next_run_at",
    "plan_error", "created_at", "updated_at",
)  # fmt: skip


def schedules_in_bulk(actor: Actor, keys: Sequence[int]) -> dict[int, ScheduleShape]:
    """The shapes of these schedules. The caller has made sure that the actor sees them."""
    found = with_health(with_related(Scheduler.objects.all()), clock.now()).in_bulk(keys)
    runs = last_results(keys, actor.visible) if actor.has_perm(executions.VIEW) else {}
    awaited = predecessors.seen_names(actor, [row.after_id for row in found.values()])
    return {pk: _schedule(row, runs.get(pk), awaited) for pk, row in found.items()}


def schedule_shape(actor: Actor, pk: int) -> ScheduleShape:
    """The shape of one schedule."""
    return schedules_in_bulk(actor, [pk])[pk]


def _schedule(row: Scheduler, last: SchedulerExecution | None, awaited: Mapping[int, str]) -> ScheduleShape:
    type_ = row.target_type
    run = None
    if last is not None:
        run = RunShape(
            id=last.pk, state=last.state, scheduled_at=last.scheduled_at, started_at=last.started_at,
            finished_at=last.finished_at,
        )  # fmt: skip
    return ScheduleShape(
        **{name: getattr(row, name) for name in _COPIED},
        target=TargetShape(type=type_, id=row.target_id, name=_target_name(type_, row.target)),
        **{f"{name}_id": getattr(row, f"{name}_id") for name in TARGETS},
        params=shown(masked(handler_of(row), row.params), "params"),
        calendar=None if row.calendar is None else row.calendar.name,
        after=awaited.get(row.after_id or 0),
        after_id=row.after_id if row.after_id in awaited else None,
        ping_url=ping_url.shown(row.ping_url),
        user=None if row.user is None else row.user.get_username(),
        group=None if row.group is None else row.group.name,
        health=str(health_of(row)),
        last_run=run,
        version=version(row),
    )


def shown(value: Any, name: str) -> Any:
    """The JSON value, if it can be written. SQLite and PostgreSQL store values that no form accepts.

    Raises:
        Refused: UNUSABLE_VALUE.
    """
    if said := problem(_("The JSON of %(name)s") % {"name": name}, value):
        raise Refused(Code.UNUSABLE_VALUE, said)
    return value


def _target_name(type_: str, target: Any) -> str:
    return str(getattr(target, TARGET_KINDS[type_].name_column)) if target is not None else ""


def executions_in_bulk(actor: Actor, keys: Sequence[int]) -> dict[int, ExecutionShape]:
    """The shapes of these executions. The caller has made sure that the actor sees them."""
    rows = SchedulerExecution.objects.select_related("group").defer("params", "headers")
    found = actor.visible.with_schedules(rows.filter(pk__in=keys))
    return {row.pk: ExecutionShape(**_execution(row)) for row in found}


def execution_detail(actor: Actor, row: SchedulerExecution) -> ExecutionDetail:
    """One execution with all that belongs to it. At most `MOST_ATTEMPTS` attempts, the newest ones, in their order."""
    attempts = list(Attempt.objects.filter(execution=row.pk).order_by("-number")[:MOST_ATTEMPTS])
    names = AttemptShape.model_fields
    files = Artefact.objects.filter(execution=row.pk).select_related("execution").order_by("pk")[:MOST_ARTEFACTS]
    return ExecutionDetail(
        **_execution(row),
        params=shown(masked(handler_of_execution(row), row.params), "params"),
        headers={} if row.headers is None else usable(row.headers),
        result=shown(result_of(row.pk, row.attempt), "result") if row.state == State.SUCCEEDED.value else None,
        attempts=[AttemptShape(**{name: getattr(attempt, name) for name in names}) for attempt in reversed(attempts)],
        artefacts=[artefact_shape(file) for file in files] if actor.has_perm(artefacts.VIEW) else [],
    )


def artefact_shape(file: Artefact) -> ArtefactShape:
    """The shape of one file. Its execution has been loaded, or is loaded now."""
    return ArtefactShape(**{name: getattr(file, name) for name in ArtefactShape.model_fields})


def _execution(row: SchedulerExecution) -> dict[str, Any]:
    copied = (
        "id", "execution_key", "trigger", "requested_by", "scheduled_at", "assigned_at", "executed_at",
        "state", "attempt",
        "started_at", "finished_at", "progress", "error_class", "fingerprint", "reason", "missed",
        "revision",
    )  # fmt: skip
    return {
        **{name: getattr(row, name) for name in copied},
        "schedule_id": row.scheduler_id,
        "schedule": None if row.scheduler is None else str(row.scheduler),
        "schedule_name": None if row.scheduler is None else row.scheduler.name,
        "target": TargetShape(type=row.type, id=row.target_id, name=row.target_name),
        "is_over": row.state not in _OPEN,
        "retries": row.retry_count,
        "due_at": row.wake_at if row.state in _WAITING else None,
        "start_by": row.start_by if row.state in _OPEN and not row.attempt else None,
        "queue": queue_of(row.queue),
        "priority": str(priority_of(row.queue)),
        "error_message": row.error_message[:ERROR_SHOWN],
        "group": None if row.group is None else row.group.name,
    }


def each_usable(
    keys: Sequence[int], bulk: Callable[[Sequence[int]], dict[int, Made]]
) -> tuple[list[Made], list[UnusableShape]]:
    """The shapes of the rows in the order of their keys, and the rows that cannot be read.

    Args:
        bulk: reads and shapes the rows with these keys. It fails if one of them cannot be read.

    Raises:
        django.db.DatabaseError: the database cannot be reached.
    """
    try:
        # In a transaction of the caller, PostgreSQL refuses all further statements after one that has failed. A
        # transaction that only reads would wait for the writers of SQLite.
        with transaction.atomic() if connection.in_atomic_block else nullcontext():
            found = bulk(keys)
        return [found[pk] for pk in keys if pk in found], []
    except Exception as error:
        if is_away(error):
            raise
        if len(keys) == 1:
            said = visible_text(f"{type(error).__name__}: {error}", 300)
            return [], [UnusableShape(id=keys[0], unusable=said)]
    half = len(keys) // 2
    first, second = each_usable(keys[:half], bulk), each_usable(keys[half:], bulk)
    return first[0] + second[0], first[1] + second[1]


def page_keys(rows: QuerySet[Row], after: int | None, size: int, descending: bool) -> tuple[list[int], int | None]:
    """The keys of one page in the order of the primary key, and the key to go on after; None on the last page.

    Args:
        after: the last key of the page before; None for the first page.
    """
    ordered = rows.order_by("-pk" if descending else "pk").prefetch_related(None)
    if after is not None:
        ordered = ordered.filter(**{"pk__lt" if descending else "pk__gt": after})
    keys = list(ordered.values_list("pk", flat=True)[: size + 1])
    return keys[:size], keys[size - 1] if len(keys) > size else None
