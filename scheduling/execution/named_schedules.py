"""Makes and changes the schedules that code asks for by name (`scheduling.api.schedule`)."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Literal, TypedDict

from django.contrib.auth.models import AbstractBaseUser, Group
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from pydantic import BaseModel

from scheduling.core.keys import is_name
from scheduling.core.submitted import Scheduled
from scheduling.core.targets import TARGET_KINDS
from scheduling.execution.params_from_code import Target, checked_params, targets_of
from scheduling.logs import get_logger
from scheduling.models import Calendar, Scheduler
from scheduling.models.author import Author, AuthorKind, authored
from scheduling.processes.conflicts import again_after_conflicts
from scheduling.processes.database import locking

log = get_logger(__name__)

TRIES = 5
"""How often a schedule is looked for whose insert another caller was faster with."""


class ScheduleOptions(TypedDict, total=False):
    """What code may say about a schedule besides its times and its target. What it leaves out is the operators'."""

    timezone: str
    calendar: str | None
    description: str
    overlap: Literal["allow", "skip", "wait", "replace"]
    spread_seconds: int | None
    spread_each: bool
    missed_runs: Literal["latest", "none", "all"]
    missed_cap: int | None
    missed_within_seconds: int | None
    active_from: datetime | None
    active_until: datetime | None
    on_excluded: Literal["skip", "hold"]
    after: str | None
    """The name of the schedule that must have succeeded before a run starts."""
    after_span: Literal["day", "previous"]
    after_within_seconds: int
    after_late: Literal["skip", "run", "fail"]
    queue: str
    priority: Literal["", "high", "normal", "low"]
    time_limit: int | None
    max_retries: int | None
    start_within_seconds: int | None
    max_runs: int | None
    pause_after_failures: int | None
    language: str
    user: AbstractBaseUser | None
    group: Group | None


def upsert(
    name: str, cron: str, handler: str, params: Mapping[str, Any] | BaseModel, options: Mapping[str, Any]
) -> Scheduled:
    """Make the schedule with this name, or give it these values. A paused schedule stays paused.

    Raises:
        UnknownHandler: no worker is registered under this name in this process.
        ParamsInvalid: the params do not fit the params model.
        ValueError: the name, the cron expression or an option cannot be used.
        TypeError: there is no such option.
    """
    if not is_name(name):
        raise ValueError(
            f"A schedule's name has 1 to 100 lower-case letters, digits and the signs . _ : / - , not {name!r:.120}."
        )
    if unknown := sorted(options.keys() - ScheduleOptions.__annotations__.keys()):
        raise TypeError(f"schedule() has no argument {', '.join(unknown)}.")
    target = targets_of({handler})[handler]
    values = _values(cron, target, checked_params(handler, params, target), options)
    with authored(Author(AuthorKind.CODE, "scheduling.api.schedule")):
        return again_after_conflicts(lambda: _upsert(name, values))


def _values(cron: str, target: Target, params: dict[str, Any], options: Mapping[str, Any]) -> dict[str, Any]:
    columns = dict(options)
    for name in {"user", "group"} & options.keys():
        owner = columns.pop(name)
        kind: Any = Scheduler._meta.get_field(name).related_model
        if owner is not None and not isinstance(owner, kind):
            raise ValueError(f"{name}= is a row of this model or None, not {owner!r:.120}.")
        columns[f"{name}_id"] = None if owner is None else owner.pk
    if "calendar" in columns:
        columns["calendar_id"] = _calendar(columns.pop("calendar"))
    if "after" in columns:
        columns["after_id"] = _key_of(columns.pop("after"))
    others = {f"{kind}_id": None for kind in TARGET_KINDS}
    return {**columns, **others, "worker_id": target.pk, "params": params, "schedule": cron, "date_time": None}


def _calendar(name: Any) -> int | None:
    """The id of the calendar with this name; None for None."""
    if name is None:
        return None
    found = Calendar.objects.filter(name=name).values_list("pk", "name") if isinstance(name, str) else ()
    for pk, stored in found:
        if stored == name:  # MariaDB ignores case
            return int(pk)
    raise ValueError(f"There is no calendar {name!r:.120}.")


def _key_of(name: str | None) -> int | None:
    if name is None:
        return None
    rows = Scheduler.objects.filter(name=name) if is_name(name) else Scheduler.objects.none()
    if (found := rows.values_list("pk", flat=True).first()) is None:
        raise ValueError(f"after= is the name of a schedule or None. No schedule has the name {name!r:.120}.")
    return found


def _upsert(name: str, values: Mapping[str, Any]) -> Scheduled:
    rows = Scheduler.objects.filter(name=name)
    with transaction.atomic():
        for _ in range(TRIES):
            # Without a lock: MariaDB would lock the gap of a missing name, and two callers would wait for each other.
            if rows.exists() and (row := locking(rows).first()) is not None:
                return _changed(row, values)
            row = Scheduler(name=name, **values)
            _check(row)
            try:
                with transaction.atomic():
                    row.save(force_insert=True)
                return Scheduled(row.pk, True)
            except IntegrityError:
                # Another caller was faster. A lock also reads what was committed after this transaction has begun.
                if (other := locking(rows).first()) is not None:
                    return _changed(other, values)
    raise IntegrityError(f"The schedule {name!r} was made and deleted {TRIES} times.")


def _changed(row: Scheduler, values: Mapping[str, Any]) -> Scheduled:
    changed = sorted(column for column, value in values.items() if getattr(row, column) != value)
    if changed:
        for column in changed:
            setattr(row, column, values[column])
        _check(row)
        row.save(update_fields={*changed, "updated_at"})
        log.info("Code has changed the schedule %r: %s", row.name, ", ".join(changed), extra={"scheduler_id": row.pk})
    return Scheduled(row.pk, False, tuple(column.removesuffix("_id") for column in changed))


def _check(row: Scheduler) -> None:
    """Raises:
    ValueError: a value cannot be stored. The message has a sentence for each wrong column.
    """
    try:
        row.full_clean(validate_unique=False, validate_constraints=False)
    except ValidationError as error:
        found = error.message_dict
        text = "; ".join(f"{column}: {' '.join(messages)}" for column, messages in found.items())
        raise ValueError(f"The schedule {row.name!r} cannot be stored: {text}") from None
