"""Assertions about what code has asked for: runs (`scheduling.api`) and schedules."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from pydantic import BaseModel

from scheduling.core.keys import stored_key
from scheduling.core.lifecycle import Trigger
from scheduling.core.targets import TARGET_KINDS
from scheduling.handlers import Handler
from scheduling.handlers.params_model import stored
from scheduling.models import Scheduler, SchedulerExecution
from scheduling.testing.handler_reference import meant

MOST_NAMED = 5
"""An error names at most so many runs and so many schedules."""

Params = Mapping[str, Any] | BaseModel | None


@dataclass(frozen=True)
class _Wanted:
    handler: Handler
    params: dict[str, Any]
    cron: str
    at: datetime | None
    key: str

    def __str__(self) -> str:
        given = {"params": self.params, "cron": self.cron, "at": self.at, "key": self.key}
        conditions = ", ".join(f"{name}={value!r}" for name, value in given.items() if value)
        return f"{self.handler.type} {self.handler.name!r}" + (f" with {conditions}" if conditions else "")

    def rows(self) -> Iterator[SchedulerExecution | Scheduler]:
        """The rows that fit."""
        for run in self.runs():
            if not self.cron and self._fits(run.params, run.scheduled_at) and self.key_fits(run):
                yield run
        for schedule in self.schedules():
            if (
                not self.key
                and self.cron in ("", schedule.schedule)
                and self._fits(schedule.params, schedule.date_time)
            ):
                yield schedule

    def runs(self) -> Iterator[SchedulerExecution]:
        """All runs of the handler that code has asked for."""
        own = {"type": self.handler.type, "target_name": self.handler.name}
        yield from SchedulerExecution.objects.filter(trigger=Trigger.CODE.value, **own).order_by("pk")

    def schedules(self) -> Iterator[Scheduler]:
        """All active schedules of the handler."""
        column = f"{self.handler.type}__{TARGET_KINDS[self.handler.type].name_column}"
        yield from Scheduler.objects.filter(status=True, **{column: self.handler.name}).order_by("pk")

    def key_fits(self, run: SchedulerExecution) -> bool:
        """Whether the run has the key, if one is wanted."""
        return not self.key or run.key == stored_key(self.key)

    def _fits(self, params: Any, at: datetime | None) -> bool:
        if self.at is not None and at != self.at:
            return False
        found = params if isinstance(params, dict) else {}
        return all(name in found and found[name] == value for name, value in self.params.items())


def assert_scheduled(
    handler: Any, params: Params = None, *, cron: str = "", at: datetime | None = None, key: str = ""
) -> SchedulerExecution | Scheduler:
    """Assert that a run of a handler was asked for with `scheduling.api`, or that an active schedule of it exists.

    Args:
        handler: the name of a worker, its function, or the class of a report.
        params: params that the run or the schedule must have. It may have others, too.
        cron: the cron expression of the schedule. No run has one.
        at: the earliest start of the run, or the date and time of the schedule; aware.
        key: the key of the run. No schedule has one.

    Returns:
        The row that was found; if there are several, the first run, or else the first schedule.

    Raises:
        AssertionError: there is none. The text names what there is.
        UnknownHandler: the handler is not registered in this process.
    """
    wanted = _wanted(handler, params, cron, at, key)
    for row in wanted.rows():
        return row
    raise AssertionError(f"No run was asked for and no schedule exists of {wanted}. {_what_there_is(wanted)}")


def assert_not_scheduled(
    handler: Any, params: Params = None, *, cron: str = "", at: datetime | None = None, key: str = ""
) -> None:
    """Assert the opposite of `assert_scheduled`.

    Raises:
        AssertionError: there is a run or a schedule. The text names it.
        UnknownHandler: the handler is not registered in this process.
    """
    for row in _wanted(handler, params, cron, at, key).rows():
        raise AssertionError(f"There is {_described(row)}.")


def _wanted(handler: Any, params: Params, cron: str, at: datetime | None, key: str) -> _Wanted:
    given = stored(params) if isinstance(params, BaseModel) else dict(params or {})
    return _Wanted(meant(handler), given, cron, at, key)


def _what_there_is(wanted: _Wanted) -> str:
    runs, schedules = list(wanted.runs())[:MOST_NAMED], list(wanted.schedules())[:MOST_NAMED]
    if runs or schedules:
        return f"There is {'; '.join([*map(_described, runs), *map(_described, schedules)])}."
    asked = SchedulerExecution.objects.filter(trigger=Trigger.CODE.value)
    others = sorted(set(asked.values_list("target_name", flat=True)))[:MOST_NAMED]
    if others:
        return f"Runs were asked for of other handlers: {', '.join(repr(name) for name in others)}."
    return "No run of any handler was asked for."


def _described(row: SchedulerExecution | Scheduler) -> str:
    if isinstance(row, Scheduler):
        when = f"{row.schedule!r}" if row.date_time is None else f"at {row.date_time.astimezone(UTC)}"
        return f"schedule {row.pk} {when} with params {row.params!r}"
    return f"run {row.pk} at {row.scheduled_at.astimezone(UTC)} with params {row.params!r}, {row.state}"
