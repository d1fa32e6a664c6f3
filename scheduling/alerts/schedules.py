"""The schedules that the rules look at, with the columns that they need."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from types import SimpleNamespace
from typing import Any

from scheduling.alerts.reading import savepoint
from scheduling.alerts.repeated import KeyedQuery
from scheduling.alerts.runs import NAMED, Run, runs_by_key, usable_instant
from scheduling.conf import get_conf
from scheduling.core.assigned import Assigned
from scheduling.core.cron import CronError
from scheduling.core.known_sentences import for_reader
from scheduling.core.targets import TARGETS
from scheduling.core.text import visible_text
from scheduling.models import Scheduler
from scheduling.models.exclusions import exclusions_of
from scheduling.models.own_timing import TIMING_COLUMNS, assigned_of, timing_problem, values_have_own_timing
from scheduling.models.schedule_names import shown_name
from scheduling.models.scheduler import load_names
from scheduling.processes.database import is_away

COLUMNS = (
    "pk", "name", "description", "schedule", "date_time", "timezone", "status", "next_run_at", "plan_error",
    "planned_at", "plan_state", "group_id", "stay_alive", "overlap", "next_nominal_at", "calendar_id", *TIMING_COLUMNS,
)  # fmt: skip


@dataclass(frozen=True)
class Schedule:
    """A schedule.

    Args:
        name: its name, as pages show it. `schedules_by_key` names a schedule without a description and a name.
        active: whether it is not paused.
        due_at: when it is due next; None if it is not planned, or if that cannot be read.
        planned_at: since when it has its present times; None if it has had them for long.
        own_zone: the name of its zone; empty for the zone of the site.
        plan_error: why it cannot be planned, as it is stored; empty if it can be.
    """

    pk: int
    name: str
    group: int | None
    active: bool
    is_service: bool
    cron: str
    date_time: datetime | None
    due_at: datetime | None
    planned_at: datetime | None
    own_zone: str
    plan_error: str
    rules: SimpleNamespace | None
    """The columns of a schedule with rules of its own (`models.own_timing`)."""

    @property
    def zone(self) -> str:
        """The name of the zone in which its times are read."""
        return self.own_zone or str(get_conf().timezone)

    @property
    def problem(self) -> str:
        """Why it cannot be planned, in the present language; empty if it can be."""
        return for_reader(self.plan_error, 300) if self.plan_error else ""

    def shown(self, run: Run | None) -> int | None:
        """The key of a run for an alert about the schedule; None if the schedule had it in another group."""
        return run.pk if run is not None and run.group_id in (None, self.group) else None

    def assigned(self) -> Assigned | None:
        """The assigned times; None if the schedule has no rules of its own.

        Raises:
            CronError: the expression, or a rule that plain SQL has written, cannot be used.
        """
        if self.rules is None:
            return None
        if problem := timing_problem(self.rules):
            raise CronError(problem)
        return assigned_of(self.rules, exclusions_of([self.rules]).get(self.pk))


def schedules_by_key(keys: Collection[int]) -> dict[int, Schedule]:
    """Those of the schedules that exist and can be read."""
    found = {schedule.pk: schedule for schedule in _by_key.rows(keys)}
    names = _names([schedule.pk for schedule in found.values() if not schedule.name])
    return found | {
        pk: replace(schedule, name=names.get(pk, str(pk))) for pk, schedule in found.items() if not schedule.name
    }


def names_for_runs(runs: Collection[Run], schedules: Mapping[int, Schedule]) -> dict[int, str]:
    """The names that the alerts about these runs give them, by the keys of the runs. Such an alert has the run's group.

    The present name of a schedule is shown to its present group only. A run that the schedule had in another group has
    the name of its target. A run that was just removed has no name.
    """
    names = {
        run.pk: own.name
        for run in runs
        if (own := schedules.get(run.scheduler_id or 0)) is not None and own.group in (None, run.group_id)
    }
    foreign = [run.pk for run in runs if run.pk not in names]
    targets = runs_by_key(foreign, NAMED) if foreign else {}
    return names | {pk: visible_text(run.target_name, 100) for pk, run in targets.items()}


def _schedule(row: Sequence[Any]) -> Schedule:
    """The schedule with these values of `COLUMNS`. Its name is empty if it has neither a description nor a name."""
    values = dict(zip(COLUMNS, row, strict=True))
    group = values["group_id"]
    return Schedule(
        pk=values["pk"],
        name=visible_text(shown_name(values["description"], values["name"]), 100),
        group=group if type(group) is int else None,
        active=values["status"] is True,
        is_service=values["stay_alive"] is True,
        cron=str(values["schedule"]),
        date_time=usable_instant(values["date_time"]),
        due_at=usable_instant(values["next_run_at"]),
        planned_at=usable_instant(values["planned_at"]),
        own_zone=str(values["timezone"] or ""),
        plan_error=str(values["plan_error"] or ""),
        rules=SimpleNamespace(id=values["pk"], **values) if values_have_own_timing(values) else None,
    )


_by_key = KeyedQuery(lambda: Scheduler.objects.order_by("pk"), COLUMNS, _schedule)


def _names(keys: list[int]) -> dict[int, str]:
    """The names of schedules without a description and a name. They consist of the target and the times."""
    if not keys:
        return {}
    try:
        with savepoint():
            columns = ("name", "description", "schedule", "date_time", *TARGETS)
            rows = list(Scheduler.objects.filter(pk__in=keys).only(*columns))
            load_names(rows)
            return {row.pk: visible_text(row, 100) for row in rows}
    except Exception as error:
        if is_away(error):
            raise
        return {}
