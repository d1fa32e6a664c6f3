"""Typed instants, next runs, error groups, stored output and filters, as all doors read them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from django.contrib.auth.models import Group
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone as clock

from scheduling.models import Scheduler
from scheduling.operations import run_filter
from scheduling.operations.actor import Actor
from scheduling.operations.failure_groups import GroupLimits, groups_shape
from scheduling.operations.failure_selection import Selection
from scheduling.operations.next_runs import MOST, next_runs, next_runs_shape
from scheduling.operations.output import Cursor, after, tail
from scheduling.operations.refused import Code, Refused
from scheduling.operations.run_filter import RunFilter, filtered_runs, run_keys
from scheduling.operations.schedule_filter import ScheduleFilter, filtered_schedules
from scheduling.operations.typed_instants import typed_instants
from scheduling.operations.why import why
from tests.factories import (
    FailedExecutionFactory,
    OutputFactory,
    SchedulerExecutionFactory,
    SchedulerFactory,
    UserFactory,
)

TERMINAL = Actor(None)
MADRID = ZoneInfo("Europe/Madrid")
NOW = datetime(2026, 7, 1, 12, tzinfo=UTC)


def wanted(**conditions: object) -> RunFilter:
    return RunFilter.model_validate(conditions)


@pytest.mark.parametrize(
    ("typed", "instants"),
    [
        ("2026-03-28 02:30", ["2026-03-28T01:30"]),
        (" 2026-03-28T02:30:59 ", ["2026-03-28T01:30"]),
        ("2026-03-28T02:30:59+02:00", ["2026-03-28T00:30"]),
        ("2026-03-28 02:30Z", ["2026-03-28T02:30"]),
        ("2026-03-28 02:30 -0500", ["2026-03-28T07:30"]),
        ("2026-10-25 02:30", ["2026-10-25T00:30", "2026-10-25T01:30"]),
        ("2026-03-29 02:30", ["2026-03-29T01:00"]),
        ("13:30", ["2026-07-01T11:30"]),
        ("14:30", ["2026-06-30T12:30"]),
    ],
)
def test_a_typed_instant(typed: str, instants: list[str]) -> None:
    found = typed_instants(typed, MADRID, NOW)
    assert found is not None
    assert [f"{at.astimezone(UTC):%Y-%m-%dT%H:%M}" for at in found.instants] == instants
    assert found.skipped == ("03-29" in typed)


@pytest.mark.parametrize(
    "typed",
    ["", "soon", "25:00", "2026-02-30 10:00", "9999-12-31 23:59Z", "0001-01-01T00:00+02:00", "1" * 99, "10:0\x00"],
)
def test_a_text_that_is_no_instant(typed: str) -> None:
    assert typed_instants(typed, MADRID, NOW) is None


@pytest.mark.django_db
def test_next_runs_are_bounded_and_never_an_error() -> None:
    row = SchedulerFactory(schedule="* * * * *")
    assert len(next_runs(row, 10**9, NOW)) == MOST
    row.schedule = "nonsense"
    shape = next_runs_shape(row)
    assert (shape.runs, bool(shape.problem)) == ([], True)


@pytest.mark.django_db
def test_groups_are_bounded_and_seen_by_members_only(monkeypatch: pytest.MonkeyPatch) -> None:
    team = Group.objects.create(name="team")
    mine = [FailedExecutionFactory() for _number in range(3)]
    FailedExecutionFactory(error_class="KeyError", error_message="x", group=team)
    user = UserFactory(permissions=["scheduling.view_failedexecution"])
    assert [group.count for group in groups_shape(TERMINAL).groups] == [3, 1]
    assert [group.count for group in groups_shape(Actor(user)).groups] == [3]
    only = groups_shape(TERMINAL, Selection(error_class="KeyError")).groups
    assert [group.error_class for group in only] == ["KeyError"]
    monkeypatch.setattr(GroupLimits, "shown_groups", 1)
    monkeypatch.setattr(GroupLimits, "newest_counted", 3)
    with CaptureQueriesContext(connection) as captured:
        bounded = groups_shape(TERMINAL)
    assert len(captured) == 3
    assert (len(bounded.groups), bounded.more, bounded.newest_counted) == (1, 1, 3)
    assert bounded.groups[0].first_at == mine[1].finished_at
    with pytest.raises(Refused) as refused:
        groups_shape(Actor(UserFactory()))
    assert refused.value.code == Code.FORBIDDEN


@pytest.mark.django_db
def test_output_is_read_as_lines() -> None:
    row = SchedulerExecutionFactory(running=True)
    OutputFactory(execution=row, attempt=1, sequence=0, text="one\ntwo\n")
    OutputFactory(execution=row, attempt=2, sequence=0, text="three\n")
    found = after(row.pk, Cursor())
    assert found.groups == [(1, ["one", "two"]), (2, ["three"])]
    assert tail(row.pk, limit=2).groups == [(1, ["two"]), (2, ["three"])]
    assert after(row.pk, found.cursor).groups == []


@pytest.mark.django_db
def test_slow_conditions_look_at_the_newest_executions_only(monkeypatch: pytest.MonkeyPatch) -> None:
    old, new = (SchedulerExecutionFactory(succeeded=True) for _number in range(2))
    failed = FailedExecutionFactory()
    assert not filtered_runs(TERMINAL, wanted(target_name="tests.noop")).is_cut
    monkeypatch.setattr(run_filter, "LIMIT", 2)
    for slow in ({"target_name": "tests.noop"}, {"q": "tests.noop"}, {"type": "worker"}, {"trigger": "cron"}):
        assert run_keys(TERMINAL, wanted(**slow), None, 9) == ([failed.pk, new.pk], None, True), slow
    for quick in (
        {"state": "failed", "q": "invoice"},
        {"scheduler": old.scheduler_id, "type": "worker"},
        {"q": old.pk},
    ):
        conditions = {name: str(value) if name == "q" else value for name, value in quick.items()}
        keys, _next, is_cut = run_keys(TERMINAL, wanted(**conditions), None, 9)
        assert (len(keys), is_cut) == (1, False), quick
    assert run_keys(TERMINAL, wanted(since=min(old.scheduled_at, old.executed_at) - timedelta(hours=1)), new.pk, 9)[
        0
    ] == [old.pk]


@pytest.mark.django_db
def test_filters_of_schedules() -> None:
    team = Group.objects.create(name="team")
    ours = SchedulerFactory(name="ours", group=team, description="Nightly backup")
    other = SchedulerFactory(name="other", off=True)
    report = SchedulerFactory(of_report=True)

    def found(**conditions: object) -> set[int]:
        rows = filtered_schedules(TERMINAL, ScheduleFilter.model_validate(conditions))
        return set(rows.filter(pk__in=[ours.pk, other.pk, report.pk]).values_list("pk", flat=True))

    assert found(group="team") == found(q="backup NIGHTLY") == {ours.pk}
    assert found(group="") == {other.pk, report.pk}
    assert found(type="report") == {report.pk}
    assert found(status=False) == found(health="paused") == {other.pk}
    assert found(q="backup weekly") == set()
    with pytest.raises(Refused):
        found(q="a\x00")
    assert Scheduler.objects.count() >= 3


@pytest.mark.django_db
def test_why_needs_the_permission_to_see_executions() -> None:
    row = SchedulerFactory()
    user = UserFactory(permissions=["scheduling.view_scheduler"])
    with pytest.raises(Refused) as refused:
        why(Actor(user), row, "03:00", clock.now())
    assert refused.value.code == Code.FORBIDDEN
    assert why(TERMINAL, row, "2020-01-01 08:00", clock.now())[0].answer == "not_created"
