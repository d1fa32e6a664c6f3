"""Schedules as files: an export can be applied, a plan names each drift, and a plan is carried out as a whole."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from django.contrib.admin.models import LogEntry
from django.utils import timezone as clock

from scheduling.core.schedule_files import Entry, nameless, read, write
from scheduling.handlers import find, register
from scheduling.models import Scheduler, Worker
from scheduling.models.own_timing import PLAIN
from scheduling.operations import audit, schedules
from scheduling.operations.actor import Actor
from scheduling.operations.params_diff import Change
from scheduling.operations.refused import Code, Refused
from scheduling.operations.schedule_apply import carry_out
from scheduling.operations.schedule_export import export
from scheduling.operations.schedule_plan import plan
from scheduling.operations.schedule_steps import Act, Rules
from scheduling.operations.schedules import EDITED
from tests.factories import (
    CalendarFactory,
    GroupFactory,
    ReminderFactory,
    ReportFactory,
    SchedulerFactory,
    UserFactory,
    WorkerFactory,
)
from tests.operations.applying import SOURCE, YEARLY, applied, refused, row_of
from tests.support import at_once

pytestmark = pytest.mark.django_db

MAY = [f"scheduling.{verb}_scheduler" for verb in ("view", "add", "change", "delete")]


@pytest.fixture
def root() -> Actor:
    return Actor(UserFactory(superuser=True), "command")


def full() -> Scheduler:
    """A schedule all of whose values differ from those of a new one, except a date, a service, a pause and a spread.

    An offset is computed from the number of the schedule, and would be another one in a wiped database.
    """
    owner = UserFactory(username="zoë")
    row = SchedulerFactory(
        name="full", description="All\u202e of it", schedule="30 2 29 3 *", timezone="Europe/Madrid",
        params={"directory": "ü", "seconds": 2.5}, handler="tests.mark", overlap="skip", queue="mail", priority="high",
        time_limit=0, language="en", max_retries=7, retry_delay_ms=2_000, retry_multiplier=1.5,
        retry_max_delay_ms=90_000, retry_jitter=False, keep_success_days=3, keep_failed_days=4, keep_output_days=5,
        keep_count=6, start_within_seconds=600, max_runs=7, pause_after_failures=3,
        ping_url="${CRON_PING_FULL}", user=owner, group=GroupFactory(name="Finance"),
        calendar=CalendarFactory(name="Holidays"), missed_runs="all", missed_cap=7, missed_within_seconds=60,
        active_from=datetime(2026, 1, 1, tzinfo=UTC), active_until=datetime(2999, 1, 1, tzinfo=UTC), on_excluded="hold",
        after_span="previous", after_within_seconds=60, after_late="fail",
    )  # fmt: skip
    row.after = SchedulerFactory(name="before", schedule=YEARLY)
    row.save()
    return row


def shown(row: Scheduler) -> dict[str, Any]:
    """What a user sees of a schedule."""
    found = {name: getattr(row, name) for name in (*EDITED, "next_run_at", "plan_error")}
    return found | {"after": row.after and row.after.name}


@pytest.mark.parametrize("format_", ["json", "yaml"])
def test_a_wiped_database_gets_the_same_schedules_and_next_runs(root: Actor, format_: Any) -> None:
    full()
    date = (clock.now() + timedelta(days=400)).replace(microsecond=0)
    SchedulerFactory(name="dated", once=True, date_time=date, timezone="Asia/Tokyo")
    SchedulerFactory(name="service", schedule=YEARLY, stay_alive=True)
    SchedulerFactory(name="paused", schedule=YEARLY, status=False, pause_reason="The bank is closed")
    SchedulerFactory(name="report", schedule=YEARLY, of_report=True, report=ReportFactory(controller="shop.sales"))
    SchedulerFactory(name="reminder", schedule=YEARLY, of_reminder=True, reminder=ReminderFactory(name="Stand-up"))
    made = export(root)
    assert made.notes == []
    text = write(made.entries, format_)
    before = {row.name: shown(row) for row in Scheduler.objects.all()}
    left_out = {"pause_reason", "spread_seconds", "spread_each"}
    assert {name for row in made.entries for name in row} >= {*EDITED} - left_out
    Scheduler.objects.all().delete()
    entries = read(text.encode(), format_)
    assert len(applied(root, entries).of(Act.MAKE)) == 7
    assert {row.name: shown(row) for row in Scheduler.objects.all()} == before
    assert set(Scheduler.objects.values_list("source_file", flat=True)) == {SOURCE}
    assert write(export(root).entries, format_) == text
    again = plan(root, entries, SOURCE, Rules(prune=True))
    assert (again.is_drift, again.problems, again.notes) == (False, (), ())
    entry = LogEntry.objects.filter(object_id=row_of("full").pk).get()
    assert audit.read(entry)[0] == f"schedule file {SOURCE} (command)"
    assert audit.stored_group(entry) == row_of("full").group_id


@pytest.mark.parametrize("stored", ["https://hc.example.com/ping/abc", ""])
def test_a_file_holds_no_ping_url_and_keeps_that_of_the_row(root: Actor, stored: str) -> None:
    row = SchedulerFactory(name="nightly", schedule=YEARLY, ping_url=stored)
    (entry,) = export(root).entries
    assert "hc.example.com" not in str(entry)
    entry["description"] = "new"
    carry_out(root, plan(root, [entry], SOURCE))
    row.refresh_from_db()
    assert (row.description, row.ping_url) == ("new", stored)
    assert not plan(root, [entry], SOURCE).is_drift
    carry_out(root, plan(root, [{**entry, "ping_url": ""}], SOURCE))
    assert row_of("nightly").ping_url == ""


def test_a_file_with_a_ping_url_is_refused_unless_secrets_are_allowed(root: Actor) -> None:
    entry = {
        "name": "nightly",
        "schedule": YEARLY,
        "worker": "tests.noop",
        "ping_url": "https://hc.example.com/ping/abc",
    }
    (problem,) = plan(root, [entry], SOURCE).problems
    assert "hc.example.com" not in str(problem)
    found = plan(root, [entry], SOURCE, Rules(allow_secrets=True))
    assert "hc.example.com" not in str([step.edits for step in found.steps])
    carry_out(root, found)
    assert row_of("nightly").ping_url == entry["ping_url"]
    assert not plan(root, [entry], SOURCE, Rules(allow_secrets=True)).is_drift
    carry_out(root, plan(root, [{**entry, "ping_url": "${CRON_PING_NIGHTLY}"}], SOURCE))
    assert row_of("nightly").ping_url == "${CRON_PING_NIGHTLY}"


DRIFTS: dict[str, Any] = {
    "description": "other", "schedule": "0 9 * * *", "date_time": None, "timezone": "", "params": {"directory": "ü"},
    "overlap": "allow", "queue": "", "priority": "low", "time_limit": None, "language": "", "max_retries": 0,
    "retry_delay_ms": None, "retry_multiplier": 2.0, "retry_max_delay_ms": 80_000, "retry_jitter": None,
    "keep_success_days": 4, "keep_failed_days": None, "keep_output_days": 1, "keep_count": None,
    "start_within_seconds": 5, "max_runs": None,
    "pause_after_failures": None, "user": None,
    "ping_url": "", "group": None, "worker": None, "stay_alive": True, "status": False, "name": None,
    "spread_seconds": 60, "spread_each": True, "missed_runs": "latest", "missed_cap": None,
    "missed_within_seconds": None, "active_from": None, "active_until": None, "on_excluded": "skip",
}  # fmt: skip


@pytest.mark.parametrize("field", DRIFTS)
def test_each_edit_is_a_drift_that_the_next_apply_undoes(root: Actor, field: str) -> None:
    row = full()
    entries = [{**export(root).entries[0], "status": True}]
    applied(root, entries)
    row.refresh_from_db()
    before, values = shown(row), {field: DRIFTS[field]}
    if field == "date_time":
        values = {"schedule": "", "date_time": clock.now() + timedelta(days=1), "max_runs": None}
    elif field == "worker":
        values = {"worker": WorkerFactory(name="tests.linger")}
    elif field == "stay_alive":
        values |= {"queue": "", "priority": "", "calendar": None, "after": None, **PLAIN}
        values |= {"start_within_seconds": None, "pause_after_failures": None}
    elif field == "spread_each":
        values |= {"spread_seconds": 60}
    elif field == "missed_runs":
        values |= {"missed_cap": None}
    elif field == "name":
        entries[0]["name"] = nameless(row.pk)
        before["name"] = nameless(row.pk)
    for name, value in values.items():
        setattr(row, name, value)
    row.save()
    found = plan(root, entries, SOURCE)
    assert found.problems == ()
    assert [step.act for step in found.steps] == [Act.CHANGE]
    assert field in {edit.name.partition(".")[0] for edit in found.steps[0].edits}
    carry_out(root, found)
    assert shown(Scheduler.objects.get(pk=row.pk)) == before
    assert not plan(root, entries, SOURCE).is_drift


def test_a_pause_is_the_operators_decision(root: Actor) -> None:
    entry = {"name": "a", "schedule": YEARLY, "worker": "tests.noop"}
    applied(root, [entry])
    schedules.change(root, row_of("a").pk, {"status": False, "pause_reason": "the bank is closed"})
    assert not plan(root, [entry], SOURCE).is_drift
    found = applied(root, [{**entry, "time_limit": 5}])
    assert found.notes == ("a is paused, and stays paused: the file has no “status”.",)
    assert (row_of("a").status, row_of("a").pause_reason) == (False, "the bank is closed")
    applied(root, [{**entry, "status": True}])
    assert row_of("a").status
    assert "status: false" in str(refused(root, [{**entry, "pause_reason": "x"}]))
    assert refused(root, [entry | {"pause_reason": "x", "status": True}]).problems[0].field == "a.pause_reason"


def test_a_one_time_schedule_that_is_over_is_not_made_again(root: Actor) -> None:
    zoned = {"name": "a", "worker": "tests.noop", "timezone": "Asia/Tokyo"}
    dates = ("2020-01-01T00:00:00+00:00", "2020-01-01T09:00", "2020-01-01 09:00:00")
    past = [{**zoned, "date_time": date, **more} for date in dates for more in ({}, {"status": True})]
    for entry in past:
        assert applied(root, [entry]).notes == ("a is not made, because its date has passed.",)
    assert not Scheduler.objects.exists()
    SchedulerFactory(
        name="a", once=True, date_time="2020-01-01T00:00Z", status=False, source_file=SOURCE, description="",
        timezone="Asia/Tokyo",
    )  # fmt: skip
    exported = export(root).entries
    for entry in [*past, *exported]:
        found = plan(root, [entry], SOURCE, Rules(prune=True))
        assert (found.is_drift, found.problems, found.notes) == (False, (), ())
    found = applied(root, [{**past[1], "description": "Over"}])
    assert (found.steps[0].edits, found.notes) == ((Change("description", None, "Over"),), ())
    Scheduler.objects.all().delete()
    assert applied(root, exported).notes == ("a is not made, because its date has passed.",)
    soon = clock.now().astimezone(ZoneInfo("Asia/Tokyo")).replace(tzinfo=None) + timedelta(minutes=5)
    for date in (soon.isoformat(), "never", "0001-01-01T00:00:00+14:00"):  # the last one has no instant in UTC
        found = plan(root, [{**zoned, "date_time": date}], SOURCE)
        assert (len(found.steps), {one.field for one in found.problems}) in ((1, set()), (0, {"a.date_time"}))


def test_secrets_stay_in_the_database(root: Actor) -> None:
    SchedulerFactory(name="a", schedule=YEARLY, handler="tests.keep", params={"token": "s3cret", "days": 2})
    entries = export(root).entries
    assert (entries[0]["params"], entries[0]["secrets"]) == ({"days": 2}, ["token"])
    applied(root, entries)
    changed = {**entries[0], "params": {"days": 3}}
    assert applied(root, [changed]).steps[0].edits == (Change("params.days", "2", "3"),)
    assert row_of("a").params == {"token": "s3cret", "days": 3}
    given = {**changed, "params": {"token": "n3w", "days": 3}}
    said = refused(root, [given])
    assert [(one.field, one.code) for one in said.problems] == [("a.params.token", "secret")]
    found = plan(root, [given], SOURCE, Rules(allow_secrets=True))
    assert "n3w" not in repr(found.steps[0].edits)
    assert [edit.name for edit in found.steps[0].edits] == ["params.token"]
    carry_out(root, found)
    assert row_of("a").params["token"] == "n3w"
    assert not any(
        "n3w" in entry.change_message or "s3cret" in entry.change_message for entry in LogEntry.objects.all()
    )
    # A new row whose code needs the secret is refused; the problem names it.
    Scheduler.objects.all().delete()
    assert "token" in next(one for one in refused(root, [changed]).problems if one.code == "secret").message
    unneeded = {"name": "b", "schedule": YEARLY, "worker": "tests.noop", "secrets": ["other"]}
    assert "other" in applied(root, [unneeded]).notes[0]
    # Another target does not get the secret.
    SchedulerFactory(name="c", schedule=YEARLY, handler="tests.keep", params={"token": "s3cret"})
    applied(root, [{"name": "c", "schedule": YEARLY, "worker": "tests.noop", "secrets": ["token"]}])
    assert row_of("c").params == {}


def test_without_the_code_each_param_may_be_secret(root: Actor) -> None:
    Worker.objects.create(name="tests.gone")
    SchedulerFactory(name="a", schedule=YEARLY, handler="tests.gone", params={"token": "s3cret", "days": 2})
    made = export(root)
    assert "s3cret" not in repr(made)
    assert made.entries[0]["secrets"] == ["days", "token"]
    assert "its code is not known" in made.notes[0]
    applied(root, made.entries)
    assert row_of("a").params == {"token": "s3cret", "days": 2}
    found = plan(root, [{"name": "a", "schedule": YEARLY, "worker": "tests.gone"}], SOURCE)
    assert "s3cret" not in repr(found.steps[0].edits)


def test_what_an_export_leaves_out_is_named(root: Actor) -> None:
    first, second = SchedulerFactory(schedule=YEARLY), SchedulerFactory(schedule=YEARLY)
    SchedulerFactory(name=nameless(second.pk), schedule=YEARLY)
    SchedulerFactory(name="@worker:tests.noop")
    bad = SchedulerFactory(schedule=YEARLY)
    Scheduler.objects.filter(pk=bad.pk).update(params=[1])
    Scheduler.objects.filter(pk=SchedulerFactory(schedule=YEARLY).pk).update(name="Upper\u202e")
    made = export(root)
    assert sorted(entry["name"] for entry in made.entries) == sorted([nameless(first.pk), nameless(second.pk)])
    assert len(made.notes) == 4
    assert len(made.left_out) == 3  # what code makes belongs into no file
    assert bad.pk in {row.id for row in made.left_out}
    assert "\u202e" not in repr(made)
    assert [entry["name"] for entry in export(root, [str(first.pk)]).entries] == [nameless(first.pk)]


def test_a_schedule_without_a_name_is_adopted(root: Actor) -> None:
    row = SchedulerFactory(schedule=YEARLY)
    entries = export(root).entries
    found = applied(root, entries)
    assert [edit.name for edit in found.steps[0].edits] == ["name", "source_file"]
    row.refresh_from_db()
    assert (row.name, row.source_file) == (nameless(row.pk), SOURCE)
    # A file of another database does not take a schedule that only has the same id.
    other = SchedulerFactory(schedule=YEARLY)
    stray = {"name": nameless(other.pk), "schedule": YEARLY, "worker": "tests.mark"}
    assert refused(root, [stray]).problems[0].code == "owner"
    applied(root, [stray], take_over=True)
    assert row_of(stray["name"]).pk == other.pk


def test_one_wrong_entry_stops_all_and_each_problem_is_named(root: Actor) -> None:
    Scheduler.objects.filter(pk=SchedulerFactory(name="bad").pk).update(params=[1])
    right = {"schedule": YEARLY, "worker": "tests.noop"}
    entries: list[Entry] = [
        {"name": "a", **right},
        {"name": "b", **right, "wrong\u202e": 1, "id": 7, "time_limt": 5},
        {"name": "c", **right, "time_limit": "5", "status": 1},
        {"name": "d", "schedule": "61 * * * *", "worker": "tests.nowhere"},
        {"name": "e", **right, "worker": "tests.mark", "params": {"seconds": "x"}},
        {"name": "f", "schedule": YEARLY},
        {"name": "g", **right, "report": "x"},
        {"name": "h", **right, "timezone": "Nowhere/Atlantis", "group": "none", "user": "none"},
        {"name": "i", **right, "secrets": "token"},
        {"name": "bad", **right, "description": "mended"},
    ]
    said = refused(root, entries)
    assert {one.field for one in said.problems} == {
        "b.wrong\\u202e", "b.id", "b.time_limt", "c.time_limit", "c.status", "d.worker", "e.params", "f.worker",
        "g.worker", "h.group", "h.user", "i.secrets",
    }  # fmt: skip
    unknown = {one.field: one.message for one in said.problems if one.code == "unknown"}
    assert unknown["b.time_limt"] == "A file has no such value. Did you mean “time_limit”?"
    assert "timezone, status" in unknown["b.id"]
    applied(root, [entries[0], entries[-1]])  # a row that plain SQL has spoiled is mended
    assert (row_of("bad").params, row_of("bad").description) == ({}, "mended")
    with pytest.raises(Refused, match="source"):
        plan(root, [], "a b")


def test_the_plan_names_targets_and_users_as_the_file_does(root: Actor) -> None:
    for name in ("tests.noop", "tests.mark"):
        WorkerFactory(name=name)
        Worker.objects.filter(name=name).update(title=f"The title of {name}")
    owner = UserFactory(username="zoë")
    entry = {"name": "a", "schedule": YEARLY, "worker": "tests.noop", "user": "zoë"}
    edits = {edit.name: edit.new for edit in applied(root, [entry]).steps[0].edits}
    assert (edits["worker"], edits["user"]) == ("tests.noop", owner.get_username())
    found = plan(root, [{**entry, "worker": "tests.mark", "user": None}], SOURCE)
    assert set(found.steps[0].edits) == {Change("worker", "tests.noop", "tests.mark"), Change("user", "zoë", None)}


def test_a_row_belongs_to_one_file(root: Actor) -> None:
    entry = {"name": "a", "schedule": YEARLY, "worker": "tests.noop"}
    applied(root, [entry])
    said = refused(root, [entry], "other.yaml")
    assert SOURCE in said.problems[0].message
    found = applied(root, [entry], "other.yaml", take_over=True)
    assert found.steps[0].edits == (Change("source_file", SOURCE, "other.yaml"),)
    assert row_of("a").source_file == "other.yaml"


def test_permissions_and_groups_hold(root: Actor) -> None:
    entry = {"name": "a", "schedule": YEARLY, "worker": "tests.noop"}
    viewer, editor = Actor(UserFactory(permissions=MAY[:1])), Actor(UserFactory(permissions=MAY))
    with pytest.raises(Refused, match="view_scheduler"):
        plan(Actor(UserFactory()), [], SOURCE)
    assert plan(viewer, [entry], SOURCE).is_drift  # a user who may only look can check
    assert refused(viewer, [entry]).extra == {"permission": "scheduling.add_scheduler"}
    applied(editor, [entry])
    group = GroupFactory()
    applied(root, [{**entry, "group": group.name}])
    editor = Actor(UserFactory(permissions=MAY))
    assert export(editor).entries == []
    assert plan(editor, [], SOURCE, Rules(prune=True)).steps == ()
    assert refused(editor, [entry]).problems[0].code == "unique"
    assert refused(editor, [{**entry, "name": "b", "group": group.name}]).problems[0].field == "b.group"


def test_code_that_asks_for_a_permission(root: Actor) -> None:
    entry = {"name": "a", "schedule": YEARLY, "worker": "tests.noop"}
    applied(root, [entry])
    editor, free = Actor(UserFactory(permissions=MAY)), find("worker", "tests.noop")
    try:
        register(replace(free, permission="auth.view_group"))
        assert not plan(editor, [entry], SOURCE).is_drift
        other = {**entry, "name": "b"}
        said = [refused(editor, [{**entry, "time_limit": 5}]), refused(editor, [], prune=True, count=1)]
        assert all("auth.view_group" in one.problems[0].message for one in said)
        assert refused(editor, [other]).problems[0].field == "b.worker"
    finally:
        register(free)


def test_a_row_that_has_changed_since_the_plan_is_left(root: Actor) -> None:
    entries: list[Entry] = [{"name": name, "schedule": YEARLY, "worker": "tests.noop"} for name in "ab"]
    applied(root, entries)
    wanted = [{**entry, "time_limit": 5} for entry in entries]
    found = plan(root, wanted, SOURCE)
    schedules.change(root, row_of("b").pk, {"description": "by an operator"})
    with pytest.raises(Refused) as said:
        carry_out(root, found)
    assert (said.value.code, [one.field for one in said.value.problems]) == (Code.CHANGED, ["b"])
    assert row_of("a").time_limit is None
    gone = plan(root, entries[:1], SOURCE, Rules(prune=True))
    schedules.change(root, row_of("b").pk, {"description": "again"})
    with pytest.raises(Refused):
        carry_out(root, gone)
    late = plan(root, [*entries, {**entries[0], "name": "c"}], SOURCE)
    applied(root, [{**entries[0], "name": "c"}], "other.yaml")
    with pytest.raises(Refused) as said:
        carry_out(root, late)
    assert [one.field for one in said.value.problems] == ["c.name"]


@pytest.mark.django_db(transaction=True)
def test_of_two_applies_at_once_both_end_and_one_may_be_refused() -> None:
    user = UserFactory(superuser=True)
    entries: list[Entry] = [{"name": f"n{i}", "schedule": YEARLY, "worker": "tests.noop"} for i in range(4)]

    def job() -> str:
        try:
            applied(Actor(user), entries)
        except Refused as error:
            assert {one.code for one in error.problems} <= {"unique", Code.CHANGED}  # noqa: PT017
            return "refused"
        return "done"

    assert "done" in at_once([job, job])
    assert Scheduler.objects.filter(source_file=SOURCE).count() == 4
    assert not plan(Actor(user), entries, SOURCE).is_drift
