"""Rows of two teams and of no team, and users of one team in each role. Only rows of the other team have MARK."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.contrib.auth.models import Group, User

from scheduling.handlers.targets import sync_targets
from scheduling.management.groups import ROLES, make_groups
from scheduling.models import Scheduler, SchedulerExecution
from scheduling.operations.tokens import make_token
from scheduling.processes.deployment_row import make_row_if_new
from tests.admin.world import World, world
from tests.factories import (
    AttemptFactory,
    CalendarFactory,
    FailedExecutionFactory,
    GroupFactory,
    OutputFactory,
    ProcessFactory,
    SchedulerExecutionFactory,
    SchedulerFactory,
    UserFactory,
)
from tests.reports.support import artefact_of

MARK = "qzforeignzq"
STATES = ("claimed", "running", "retrying", "succeeded", "failed", "failed", "cancelled", "discarded", "skipped")


@dataclass(frozen=True)
class Made:
    """What one team has: its schedules, executions and files."""

    schedules: Sequence[Scheduler]
    executions: Sequence[SchedulerExecution]
    files: Sequence[int]


@dataclass(frozen=True)
class Teams:
    """All rows, and the secrets of tokens.

    Args:
        secrets: the role of a user, and the secret of the user's token.
        foreign: the rows that none of the users sees, as `world` reads them.
    """

    own: Made
    other: Made
    secrets: dict[str, str]
    foreign: World


def make_teams() -> Teams:
    """Store the rows. MEDIA_ROOT must be a folder of the test."""
    make_row_if_new()
    sync_targets()
    list(make_groups())
    team, other_team = GroupFactory(name="team"), GroupFactory(name="other team")
    ProcessFactory()
    ProcessFactory(producer=True)
    secrets = {role: make_token(_member(role, team), "fuzz")[1] for role in ROLES}
    shared, own = make_rows(None), make_rows(team)
    own = Made(*([*getattr(own, name), *getattr(shared, name)] for name in ("schedules", "executions", "files")))
    before = world()
    other = make_rows(other_team, MARK)
    foreign = {label: [row for row in rows if row not in before[label]] for label, rows in world().items()}
    return Teams(own, other, secrets, foreign)


def make_rows(group: Group | None, mark: str = "") -> Made:
    """Store schedules, and executions in all states with what belongs to them."""
    of = {"group": group, "description": f"described {mark}"}
    typed = SchedulerFactory(rare=True, handler="tests.typed", params={"since_days": 1}, **of)
    # A param that the handler knew when it was stored: no form and no request would store it now.
    typed.params = {"since_days": 1, "word": mark}
    Scheduler.objects.filter(pk=typed.pk).update(params=typed.params)
    schedules = [
        typed,
        SchedulerFactory(rare=True, name=f"named-{mark or (group and group.pk)}", **of),
        SchedulerFactory(rare=True, off=True, pause_reason=f"paused {mark}", **of),
        SchedulerFactory(once=True, **of),
        SchedulerFactory(rare=True, of_report=True, **of),
    ]
    texts = {"group": group, "headers": {"trace": f"a{mark}"}, "requested_by": f"ann {mark}"}
    executions = [SchedulerExecutionFactory(scheduler=typed, execution_key=f"manual-{mark}-{group}", **texts)]
    for number, state in enumerate(STATES):
        row = SchedulerExecutionFactory(
            scheduler=schedules[number % 3], progress=f"1 of 2 {mark}", **{state: True}, **texts
        )
        executions.append(row)
    executions.append(FailedExecutionFactory(scheduler=typed, error_message=f"no total {mark}", **texts))
    AttemptFactory(execution=executions[-1], number=1, traceback=f"Traceback {mark}", error_message=f"it failed {mark}")
    AttemptFactory(execution=executions[4], number=1, outcome="succeeded", result=f'{{"rows": "{mark}"}}')
    OutputFactory(execution=executions[4], text=f"2026-03-10T12:00:00.000Z INFO printed {mark}\n")
    OutputFactory(execution=executions[2], text=f"2026-03-10T12:00:00.000Z INFO printed {mark}\n")
    CalendarFactory(name=f"calendar {mark or group}", group=group, entries=f"sat {mark}")
    file = artefact_of(executions[4], filename=f"numbers{mark}.csv")
    return Made(schedules, executions, [file.pk])


def _member(role: str, team: Group) -> User:
    user: User = UserFactory(username=role)
    user.groups.add(team, Group.objects.get(name=role))
    return user
