"""Finds the rows of targets and their handlers, and creates a row for each registered handler."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from django.apps import apps
from django.db import DEFAULT_DB_ALIAS, models

from scheduling.core.targets import A_TARGET, TARGET_KINDS
from scheduling.handlers.default_schedules import make_default_schedules
from scheduling.handlers.registry import Handler, UnknownHandler, find, handlers
from scheduling.models import Scheduler, SchedulerExecution


def target_model(type_: str) -> type[models.Model]:
    """The Django model of a target type.

    Raises:
        LookupError: for an unknown type.
    """
    if type_ not in TARGET_KINDS:
        raise LookupError(f"There is no target type {type_!r}: it is {A_TARGET}.")
    return apps.get_model(TARGET_KINDS[type_].model)


def find_target(type_: str, target_id: int | None) -> models.Model | None:
    """The target's row; None if the type is unknown or the row does not exist."""
    try:
        model = target_model(type_)
    except LookupError:
        return None
    return None if target_id is None else model._default_manager.filter(pk=target_id).first()


NAME_FIELD = {type_: kind.name_column for type_, kind in TARGET_KINDS.items() if not kind.handler}
"""Maps a target type to the column that names the handler. A type whose rows all share one handler is left out."""


def target_names(targets: Iterable[tuple[str, int | None]]) -> dict[tuple[str, int | None], str]:
    """Map (type, id) to the name of the target. For a worker or a report, this is also the name of the handler."""
    wanted: dict[str, set[int]] = defaultdict(set)
    for type_, target_id in targets:
        if type_ and target_id is not None:
            wanted[type_].add(target_id)
    names: dict[tuple[str, int | None], str] = {}
    for type_, ids in wanted.items():
        rows = target_model(type_)._default_manager.filter(pk__in=ids)
        names |= {(type_, pk): name for pk, name in rows.values_list("pk", TARGET_KINDS[type_].name_column)}
    return names


def handler_of(scheduler: Scheduler) -> Handler | None:
    """The handler of the schedule's target; None if the handler is not registered in this process."""
    return handler_behind(scheduler.target_type, scheduler.target)


def handler_behind(type_: str, target: models.Model | None) -> Handler | None:
    """The handler that a target row names; None if the handler is not registered in this process."""
    return handler_named(type_, getattr(target, "handler_name", ""))


def handler_named(type_: str, name: str) -> Handler | None:
    """The handler with this name; None if the handler is not registered in this process."""
    try:
        return find(type_, name)
    except UnknownHandler:
        return None


def handler_of_execution(row: SchedulerExecution) -> Handler | None:
    """The handler of an execution; None if the handler is not registered in this process.

    The handler of a worker or a report has the same name as the target. All reminders share one handler.
    """
    kind = TARGET_KINDS.get(row.type)
    return handler_named(row.type, kind.handler if kind is not None and kind.handler else row.target_name)


def sync_targets(using: str = DEFAULT_DB_ALIAS) -> int:
    """Create a target row for each registered handler that has no row, and the schedules of `@worker(schedule=)`.

    Returns how many target rows were missing.

    Existing rows do not change, because operators may have edited them. If a handler is gone, its row stays, because
    the next deploy may bring the handler back.
    """
    made = 0
    for type_, column in NAME_FIELD.items():
        model = target_model(type_)
        rows = model._default_manager.using(using)
        known = set(rows.values_list(column, flat=True))
        missing = [
            model(**{column: handler.name, "title": handler.title, "description": handler.description})
            for handler in handlers(type_)
            if handler.name not in known
        ]
        # Two processes may create the same rows at once. The names are unique, so the database ignores the second rows.
        rows.bulk_create(missing, ignore_conflicts=True)
        made += len(missing)
    make_default_schedules(using)
    return made


def sync_after_migrate(sender: Any, using: str = DEFAULT_DB_ALIAS, **_kwargs: Any) -> None:
    """`post_migrate` receiver: create the target rows as soon as the tables of all target types exist."""
    from django.db import connections

    tables = set(connections[using].introspection.table_names())
    wanted = {Scheduler._meta.db_table, *(target_model(type_)._meta.db_table for type_ in NAME_FIELD)}
    if apps.ready and wanted <= tables:
        sync_targets(using)
