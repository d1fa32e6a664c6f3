"""Visibility: which schedules and executions a user may see. The rule about groups stands here and nowhere else.

- A row without a group is seen by every user who may view such rows.
- A row with a group is seen by the members of this group, and by users with the permission `VIEW_ALL_GROUPS`.

An execution has a group of its own, which is copied from the schedule when the execution is made. So a schedule that
changes its group neither reveals nor hides its earlier runs. What belongs to an execution (attempts, output, files,
messages) has the execution's group.

An alert has the group of what it is about. A rule of alerts and a channel may have a group, too.

Code that no user has asked for sees everything: producers, consumers, commands in a terminal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import Any, TypeVar

from django.db.models import Exists, Model, OuterRef, Prefetch, Q, QuerySet, Value

from scheduling.core.targets import TARGETS
from scheduling.models.alert import Alert
from scheduling.models.alert_message import AlertNotice
from scheduling.models.alert_rule import AlertRule
from scheduling.models.backfill import Backfill
from scheduling.models.calendar import Calendar
from scheduling.models.channel import Channel
from scheduling.models.counts import counts
from scheduling.models.execution import FailedExecution, SchedulerExecution
from scheduling.models.refused_row import RefusedRow
from scheduling.models.replay import Replay, ReplayGroup
from scheduling.models.scheduler import Scheduler
from scheduling.models.zone_data import MovedRun

VIEW_ALL_GROUPS = "scheduling.view_all_groups"
"""The permission to see the rows of all groups. A superuser has it."""

_KEPT = "_scheduling_visibility"
"""The attribute of a user in which a request keeps what it has looked up."""

MOST_PARTS = 8
"""So many groups of a user are read one by one. Further groups are read together."""

Row = TypeVar("Row", bound=Model)


@dataclass(frozen=True)
class Visibility:
    """What one user sees.

    Args:
        groups: the primary keys of the groups whose rows are seen; None for the rows of all groups.
        are_used: whether any row has a group. If none has, all rows are seen, and the queries are the same as for a
            user who sees everything.
    """

    groups: frozenset[int] | None = None
    are_used: bool = True

    @property
    def is_limited(self) -> bool:
        """Whether rows of some groups may be hidden."""
        return self.groups is not None and self.are_used

    def condition(self, path: str = "") -> Q:
        """The condition on rows with a column `group`.

        Args:
            path: the relation that leads to these rows, such as `execution__`.
        """
        if not self.is_limited:
            return Q()
        own = Q(**{f"{path}group__in": self.own}) if self.own else Q()
        return Q(**{f"{path}group__isnull": True}) | own

    @property
    def parts(self) -> list[Q]:
        """The condition in parts that exclude each other: no group, and the user's groups.

        A database counts the rows of each part with one index.
        """
        return [Q(group__isnull=True), Q(group__in=self.own)] if self.is_limited else [Q()]

    @property
    def single_groups(self) -> list[Q]:
        """The conditions on rows without a group and on each of the first groups. An index has their rows in order."""
        return [Q(group__isnull=True), *(Q(group=pk) for pk in self.own[:MOST_PARTS])]

    @property
    def other_groups(self) -> Q | None:
        """The condition on the rows of the user's further groups; None if there are no further groups."""
        return Q(group__in=self.own[MOST_PARTS:]) if len(self.own) > MOST_PARTS else None

    @property
    def own(self) -> list[int]:
        """The user's groups, in the order of their keys; empty if the user sees all groups."""
        return sorted(self.groups or ())

    def only(self, rows: QuerySet[Row]) -> QuerySet[Row]:
        """Those of the schedules or executions that are seen."""
        return rows.filter(self.condition()) if self.is_limited else rows

    def schedules(self) -> QuerySet[Scheduler]:
        """The schedules that are seen."""
        return self.only(Scheduler.objects.all())

    def executions(self) -> QuerySet[SchedulerExecution]:
        """The executions that are seen."""
        return self.only(SchedulerExecution.objects.all())

    def failures(self) -> QuerySet[FailedExecution]:
        """The failures of the inbox that are seen."""
        return self.only(FailedExecution.objects.filter(state="failed"))

    def of_executions(self, rows: QuerySet[Row]) -> QuerySet[Row]:
        """Those of the rows whose `execution` is seen: artefacts, for example."""
        return rows.filter(Exists(self.executions().filter(pk=OuterRef("execution")))) if self.is_limited else rows

    def refused_rows(self, rows: QuerySet[RefusedRow]) -> QuerySet[RefusedRow]:
        """Those of the refused rows that are schedules or executions which are seen."""
        if not self.is_limited:
            return rows
        seen = {RefusedRow.Kind.SCHEDULER: self.schedules(), RefusedRow.Kind.EXECUTION: self.executions()}
        found = (Q(Exists(some.filter(pk=OuterRef("row_id"))), kind=kind.value) for kind, some in seen.items())
        return rows.filter(reduce(or_, found))

    def replays(self) -> QuerySet[Replay]:
        """The replays that are seen: those whose executions are all seen. A replay is shown whole or not at all."""
        if not self.is_limited:
            return Replay.objects.all()
        hidden = ReplayGroup.objects.filter(replay=OuterRef("pk")).exclude(group__in=self.own)
        return Replay.objects.exclude(Exists(hidden))

    def backfills(self) -> QuerySet[Backfill]:
        """The backfills that are seen."""
        return self.only(Backfill.objects.all())

    def alerts(self) -> QuerySet[Alert]:
        """The alerts that are seen."""
        return self.only(Alert.objects.all())

    def tells_of_others(self, message: str) -> Exists | Value:
        """Whether a message tells of alerts that are not seen, as a column of a query. A channel may tell all groups.

        Args:
            message: the column of the query that has the primary key of the message.
        """
        if not self.is_limited:
            return Value(False)
        return Exists(AlertNotice.objects.filter(message=OuterRef(message)).exclude(self.condition("alert__")))

    def alert_rules(self) -> QuerySet[AlertRule]:
        """The rules of alerts that are seen. A rule about a schedule is seen only if the schedule is."""
        rows = self.only(AlertRule.objects.all())
        if not self.is_limited:
            return rows
        return rows.filter(Q(schedule=None) | Exists(self.schedules().filter(pk=OuterRef("schedule"))))

    def channels(self) -> QuerySet[Channel]:
        """The channels that are seen."""
        return self.only(Channel._default_manager.all())

    def calendars(self) -> QuerySet[Calendar]:
        """The calendars that are seen."""
        return self.only(Calendar.objects.all())

    def shows(self, row: Any) -> bool:
        """Whether a schedule or an execution is seen. `row` needs no more than the column `group`."""
        return self.shows_group(row.group_id)

    def shows_group(self, group: int | None) -> bool:
        """Whether the rows of a group are seen. None stands for no group."""
        return group is None or not self.is_limited or group in self.own

    def with_schedules(self, rows: QuerySet[Row]) -> QuerySet[Row]:
        """Executions with their schedules and the targets of these. The query of the executions has no join.

        A schedule that is not seen is None, although its execution may be seen: the schedule got its group later.
        """
        chosen: Any = Prefetch("scheduler", self.schedules()) if self.is_limited else "scheduler"
        return rows.prefetch_related(chosen, *(f"scheduler__{target}" for target in TARGETS))

    def seen_keys(self, model: type[Model], keys: Iterable[int]) -> set[int]:
        """Those of the primary keys whose rows exist and are seen."""
        own: dict[type[Model], Callable[[], QuerySet[Any]]] = {Replay: self.replays, AlertRule: self.alert_rules}
        rows = own[model]() if model in own else self.only(model._default_manager.all())
        return set(rows.filter(pk__in=list(keys)).values_list("pk", flat=True))


EVERYTHING = Visibility()
"""What producers, consumers and commands in a terminal see."""


def visibility_of(user: Any) -> Visibility:
    """What this user sees. It is looked up once for each request, because each request has a user object of its own."""
    known: Visibility | None = getattr(user, _KEPT, None)
    if known is None:
        known = visibility_by_groups(user) if user.has_perm(VIEW_ALL_GROUPS) or _are_used() else _NOTHING_IS_HIDDEN
        setattr(user, _KEPT, known)
    return known


def visibility_by_groups(user: Any) -> Visibility:
    """What this user sees, whether or not a row has a group at present. Log entries may be about rows that had one."""
    if user.has_perm(VIEW_ALL_GROUPS):
        return EVERYTHING
    groups = getattr(user, "groups", None)  # a project's own user model may have no groups
    return Visibility(frozenset(groups.values_list("pk", flat=True) if groups is not None else ()))


def visibility_of_group(group: int | None) -> Visibility:
    """What a run sees that has this group: the rows of the group, and those without a group.

    Each user who sees the run sees its output and its files. So the run may see no more than each of these users.
    """
    own = frozenset[int]() if group is None else frozenset({group})
    return Visibility(own) if _are_used() else _NOTHING_IS_HIDDEN


_NOTHING_IS_HIDDEN = Visibility(frozenset(), are_used=False)


def _are_used() -> bool:
    """Whether any row has a group, in one statement. The answer is not kept: a row may get a group at any time."""
    # `group__gt=0` instead of `IS NOT NULL`, because all databases answer it from the first entry of an index.
    tables: tuple[type[Model], ...] = (
        Scheduler, SchedulerExecution, ReplayGroup, Backfill, MovedRun, Alert, AlertRule, Calendar, Channel,
    )  # fmt: skip
    rows = {model: [model._default_manager.filter(group__gt=0)] for model in tables}
    return any(counts(rows, 1).values())
