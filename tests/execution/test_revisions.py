"""Each change of a schedule leaves exactly one revision with its author, whichever way it takes."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
import time_machine
from django.core import serializers
from django.core.management import call_command
from django.db import connection
from django.test import Client
from django.urls import reverse
from django.utils import timezone as clock

from scheduling.api import schedule, unschedule
from scheduling.execution.claim import claim_due
from scheduling.execution.retention.one_time import remove_spent
from scheduling.execution.revisions import note_found
from scheduling.models import Scheduler, ScheduleRevision, SchedulerExecution, Worker
from scheduling.models.schedule_revision import NOT_IN_STATE, STATE_COLUMNS
from scheduling.operations.actor import Actor
from scheduling.producer.changed_schedules import ChangedSchedules
from scheduling.producer.sweeps import plan_stale
from tests.admin.scheduler_form import change, form, worker
from tests.factories import SchedulerFactory, UserFactory, WorkerFactory, due
from tests.http.client import ApiClient
from tests.management.cron.calls import cron
from tests.operations.applying import applied
from tests.support import NOON, at_once

pytestmark = pytest.mark.django_db

SECRET = "correct-horse-7731"


def revisions(pk: int) -> list[ScheduleRevision]:
    """Those of a schedule, the oldest first."""
    return list(ScheduleRevision.objects.filter(schedule=pk).order_by("number"))


def sweep() -> int:
    """Find what plain SQL has changed."""
    plan_stale(clock.now())
    return ChangedSchedules(pause=0).turn(clock.now())


def test_each_column_is_in_the_state_or_left_out_on_purpose() -> None:
    """A new column that decides what runs and when belongs to the state; one that producers write does not."""
    known = {
        "name", "source_file", "params", "pause_reason", "description", "user", "group", "language", "time_limit",
        "ping_url", "worker", "report", "reminder", "schedule", "date_time", "timezone", "status", "overlap",
        "stay_alive", "queue", "priority", "max_retries", "retry_delay_ms", "retry_multiplier", "retry_max_delay_ms",
        "retry_jitter", "keep_success_days", "keep_failed_days", "keep_output_days", "keep_count",
        "spread_seconds", "spread_each", "missed_runs", "missed_cap", "missed_within_seconds", "active_from",
        "active_until", "on_excluded", "calendar", "start_within_seconds", "max_runs", "pause_after_failures", "after",
        "after_span", "after_within_seconds", "after_late",
    }  # fmt: skip
    left_out = {
        "id", "created_at", "updated_at", "revision", "plan_state", "plan_error", "next_run_at", "planned_at",
        "planned_schedule", "planned_date_time", "planned_timezone", "planned_status", "paused_at", "paused_by",
        "pause_recorded_to", "open_run", "open_skip", "waiting_run", "paused_for", "failures_since", "runs_counted",
        "counted_for", "next_nominal_at", "planned_spread_seconds", "planned_spread_each", "planned_missed_runs",
        "planned_missed_cap", "planned_missed_within_seconds", "planned_active_from", "planned_active_until",
        "planned_on_excluded", "planned_calendar_id", "planned_calendar_version",
    }  # fmt: skip
    fields = {field.name for field in Scheduler._meta.get_fields() if field.concrete}
    assert fields == known | left_out, "say in NOT_IN_STATE whether a revision holds the new column, then here"
    assert left_out == NOT_IN_STATE & fields
    assert {name.removesuffix("_id") for name in STATE_COLUMNS} == known


def by_form(row: Scheduler) -> None:
    admin = UserFactory(username="anna", superuser=True)
    client = Client()
    client.force_login(admin)
    posted = form(worker=worker(), description="new", schedule="0 8 * * *", change_reason="asked by sales")
    assert client.post(change(row), posted).status_code == 302


def by_button(row: Scheduler) -> None:
    client = Client()
    client.force_login(UserFactory(username="anna", superuser=True))
    client.post(reverse("admin:scheduling_scheduler_pause", args=[row.pk]), {"reason": "asked by sales"})


def by_action(row: Scheduler) -> None:
    client = Client()
    client.force_login(UserFactory(username="anna", superuser=True))
    data = {"action": "pause_selected", "_selected_action": [row.pk], "post": "yes", "reason": "asked by sales"}
    client.post(reverse("admin:scheduling_scheduler_changelist"), data)


def by_delete_page(row: Scheduler) -> None:
    client = Client()
    client.force_login(UserFactory(username="anna", superuser=True))
    client.post(reverse("admin:scheduling_scheduler_delete", args=[row.pk]), {"post": "yes"})


def by_delete_action(row: Scheduler) -> None:
    client = Client()
    client.force_login(UserFactory(username="anna", superuser=True))
    data = {"action": "delete_selected", "_selected_action": [row.pk], "post": "yes"}
    client.post(reverse("admin:scheduling_scheduler_changelist"), data)


def by_token(row: Scheduler) -> None:
    client = ApiClient(UserFactory(username="anna", superuser=True))
    path = f"schedulers/{row.pk}?reason=asked+by+sales"
    assert client.send("PATCH", path, {"description": "new"}).status_code == 200


def by_token_pause(row: Scheduler) -> None:
    client = ApiClient(UserFactory(username="anna", superuser=True))
    assert client.post(f"schedulers/{row.pk}/pause", {"reason": "asked by sales"}).status_code == 200


def by_token_delete(row: Scheduler) -> None:
    client = ApiClient(UserFactory(username="anna", superuser=True))
    assert client.send("DELETE", f"schedulers/{row.pk}?reason=asked+by+sales").status_code == 204


def by_file(row: Scheduler) -> None:
    actor = Actor(UserFactory(username="anna", superuser=True), via="command")
    entry: Any = {"name": "nightly", "worker": "tests.noop", "schedule": row.schedule, "description": "new"}
    applied(actor, [entry], "shop")


def by_command(row: Scheduler) -> None:
    UserFactory(username="anna", superuser=True)
    assert cron("edit", row.pk, "--set", "description=new", "--as", "anna").code == 0


def by_command_delete(row: Scheduler) -> None:
    UserFactory(username="anna", superuser=True)
    assert cron("delete", row.pk, "--yes", "--as", "anna").code == 0


def by_code(row: Scheduler) -> None:
    row.description = "new"
    row.save()


def by_code_delete(row: Scheduler) -> None:
    Scheduler.objects.filter(pk=row.pk).delete()


def by_fixture(row: Scheduler) -> None:
    row.description = "new"
    for found in serializers.deserialize("json", serializers.serialize("json", [row])):
        found.save()


def by_sql_times(row: Scheduler) -> None:
    with connection.cursor() as cursor:
        cursor.execute("UPDATE scheduling_scheduler SET schedule = '5 8 * * *' WHERE id = %s", [row.pk])
    sweep()
    sweep()


def by_sql_params(row: Scheduler) -> None:
    Scheduler.objects.filter(pk=row.pk).update(params={"seconds": 3})
    sweep()
    sweep()


def by_sql_pause_before_a_claim(row: Scheduler) -> None:
    Scheduler.objects.filter(pk=row.pk).update(status=False, next_run_at=NOON)
    claim_due(NOON, embedded=True)  # the claim itself finds it, because it takes the due instant away


def by_sql_delete(row: Scheduler) -> None:
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM scheduling_scheduler WHERE id = %s", [row.pk])
    sweep()
    sweep()


WAYS: list[tuple[Callable[[Scheduler], None], str, str, str, str]] = [
    (by_form, "changed", "user", "anna", "asked by sales"),
    (by_button, "changed", "user", "anna", "asked by sales"),
    (by_action, "changed", "user", "anna", "asked by sales"),
    (by_delete_page, "deleted", "user", "anna", ""),
    (by_delete_action, "deleted", "user", "anna", ""),
    (by_token, "changed", "token", "anna, token", "asked by sales"),
    (by_token_pause, "changed", "token", "anna, token", "asked by sales"),
    (by_token_delete, "deleted", "token", "anna, token", "asked by sales"),
    (by_file, "changed", "file", "shop, anna", ""),
    (by_command, "changed", "command", "anna, command", ""),
    (by_command_delete, "deleted", "command", "anna, command", ""),
    (by_code, "changed", "code", "", ""),
    (by_code_delete, "deleted", "code", "", ""),
    (by_fixture, "changed", "fixture", "", ""),
    (by_sql_times, "changed", "sql", "", ""),
    (by_sql_params, "changed", "sql", "", ""),
    (by_sql_pause_before_a_claim, "changed", "sql", "", ""),
    (by_sql_delete, "deleted", "sql", "", ""),
]


@pytest.mark.parametrize(("act", "kind", "by", "name", "reason"), WAYS, ids=[way[0].__name__ for way in WAYS])
def test_each_way_leaves_one_revision(
    act: Callable[[Scheduler], None], kind: str, by: str, name: str, reason: str
) -> None:
    row = SchedulerFactory(name="nightly", source_file="shop")
    assert [(one.number, one.kind, one.author_kind) for one in revisions(row.pk)] == [(1, "made", "code")]
    act(row)
    found = revisions(row.pk)[1:]
    assert [(one.number, one.kind, one.author_kind) for one in found] == [(2, kind, by)]
    assert found[0].author.startswith(name)
    assert bool(found[0].author) == bool(name)
    assert found[0].reason == reason
    assert bool(found[0].changes) == (kind == "changed")
    numbers = Scheduler.objects.filter(pk=row.pk).values_list("revision", flat=True)
    assert list(numbers) == ([] if kind == "deleted" else [2])


def test_each_way_to_a_new_schedule_leaves_one_revision() -> None:
    admin = UserFactory(username="anna", superuser=True)
    client = Client()
    client.force_login(admin)
    client.post(reverse("admin:scheduling_scheduler_add"), form(worker=worker(), schedule="0 8 * * *"))
    ApiClient(admin).post("schedulers", {"worker": "tests.noop", "schedule": "0 9 * * *"})
    cron("add", "--name", "by-command", "--worker", "tests.noop", "--schedule", "0 9 * * *", "--as", "anna")
    schedule("by-code", "0 3 * * *", "tests.noop")
    entry: Any = {"name": "by-file", "worker": "tests.noop", "schedule": "0 3 * * *"}
    applied(Actor(admin), [entry], "shop")
    pk = SchedulerFactory().pk
    values = Scheduler.objects.filter(pk=pk).values().get()
    own = {name: value for name, value in values.items() if name not in ("id", "plan_state", "revision", "name")}
    own |= {name: None for name in own if name.startswith("planned_") and Scheduler._meta.get_field(name).null}
    Scheduler.objects.bulk_create([Scheduler(**own)])
    sweep()
    made = ScheduleRevision.objects.filter(schedule__in=Scheduler.objects.values("pk")).order_by("pk")
    rows = [(one.number, one.kind, one.author_kind, one.author.split(" “")[0]) for one in made]
    assert [one for one in rows if one not in (OWN_ROW, BY_MIGRATION)] == [
        (1, "made", "user", "anna"),
        (1, "made", "token", "anna, token"),
        (1, "made", "command", "anna, command"),
        (1, "made", "code", "scheduling.api.schedule"),
        (1, "made", "file", "shop, anna"),
        (1, "made", "code", ""),
    ]
    assert BY_MIGRATION in rows
    assert len(made) == Scheduler.objects.count() == Scheduler.objects.filter(revision=1).count()


OWN_ROW = (1, "made", "code", "@worker(schedule=)")
BY_MIGRATION = (1, "made", "sql", "")
"""Schedules that no save has planned: plain SQL or a migration has made them."""


def test_code_by_name_and_retention_name_themselves() -> None:
    found = schedule("nightly", "0 3 * * *", "tests.noop")
    schedule("nightly", "0 3 * * *", "tests.noop")
    assert len(revisions(found.id)) == 1
    schedule("nightly", "0 4 * * *", "tests.noop")
    unschedule("nightly")
    assert [(one.kind, one.author) for one in revisions(found.id)] == [
        ("made", "scheduling.api.schedule"),
        ("changed", "scheduling.api.schedule"),
        ("deleted", "scheduling.api.unschedule"),
    ]
    once = of_noon()
    claim_due(NOON, embedded=True)
    SchedulerExecution.objects.filter(scheduler=once.pk).update(state="succeeded")
    assert remove_spent([once.pk], clock.now(), dry_run=False) == 1
    assert [(one.kind, one.author) for one in revisions(once.pk)][-1] == ("deleted", "cleanup_executions")


def test_a_save_that_changes_nothing_leaves_no_revision() -> None:
    row = SchedulerFactory(handler="tests.mark", params={"seconds": 1.5})
    for _time in range(2):
        row.save()
        Scheduler.objects.get(pk=row.pk).save()
    assert sweep() == 0
    assert len(revisions(row.pk)) == 1


def of_noon() -> Scheduler:
    """A schedule that runs once, at NOON."""
    with time_machine.travel(NOON - timedelta(hours=1), tick=False):
        return SchedulerFactory(schedule="", date_time=NOON)


def test_what_producers_write_is_no_change() -> None:
    rows = [due(SchedulerFactory(overlap="skip"), NOON), of_noon()]
    claim_due(NOON, embedded=True)
    sweep()
    assert [len(revisions(row.pk)) for row in rows] == [1, 1]
    once = Scheduler.objects.get(pk=rows[1].pk)
    assert not once.status
    once.status, once.date_time = True, clock.now() + timedelta(days=2)
    once.save()
    assert set(revisions(once.pk)[-1].changes) == {"date_time"}


def test_a_change_by_sql_is_not_ascribed_to_the_next_user() -> None:
    row = SchedulerFactory()
    Scheduler.objects.filter(pk=row.pk).update(params={"seconds": 3}, time_limit=5)
    by_button(row)
    found = [(one.author_kind, set(one.changes)) for one in revisions(row.pk)[1:]]
    assert found == [("sql", {"params.seconds", "time_limit"}), ("user", {"status", "pause_reason"})]
    assert Scheduler.objects.get(pk=row.pk).revision == 3


def test_an_execution_names_the_revision_that_planned_it() -> None:
    row = SchedulerFactory(schedule="0 12 * * *")
    due(row, NOON)
    claim_due(NOON, embedded=True)
    row = Scheduler.objects.get(pk=row.pk)
    row.description = "new"
    row.save()
    due(row, NOON + timedelta(days=1))
    claim_due(NOON + timedelta(days=1), embedded=True)
    assert list(SchedulerExecution.objects.order_by("pk").values_list("revision", flat=True)) == [1, 2]


def test_no_revision_holds_a_secret() -> None:
    WorkerFactory(name="tests.keep")
    row = SchedulerFactory(handler="tests.keep", params={"token": SECRET})
    row.params = {"token": SECRET + "2"}
    row.save()
    Scheduler.objects.filter(pk=row.pk).update(params={"token": SECRET + "3"}, ping_url=f"https://hc.example/{SECRET}")
    sweep()
    Scheduler.objects.filter(pk=row.pk).delete()
    stored = json.dumps(list(ScheduleRevision.objects.values()), default=str)
    assert [set(one.changes) for one in revisions(row.pk)] == [
        set(), {"params.token"}, {"params.token", "ping_url"}, set(),
    ]  # fmt: skip
    assert SECRET not in stored
    assert "••" in json.dumps(json.loads(revisions(row.pk)[0].state), ensure_ascii=False)


def test_the_params_of_unknown_code_are_hidden() -> None:
    unknown = Worker.objects.create(name="gone.away")
    row = SchedulerFactory(worker=unknown, params={})
    Scheduler.objects.filter(pk=row.pk).update(params={"password": SECRET})
    sweep()
    assert SECRET not in json.dumps(list(ScheduleRevision.objects.values()), default=str)
    assert set(revisions(row.pk)[-1].changes) == {"params.password"}


@pytest.mark.parametrize(
    "values",
    [
        {"schedule": "nonsense \x1b[31m \u202e"},
        {"schedule": "<script>alert(1)</script>"},
        {"timezone": "Mars/Phobos"},
        {"params": ["a", {"b": None}]},
        {"params": {"x" * 300: "y" * 30_000, "": "", "a.b": {"c": [1, 2.5, None, True]}}},
        {"params": {str(number): number for number in range(1_200)}},
        {"description": "\ud83d\ude00 \u202e <b>"},
        {"retry_multiplier": 1e300, "max_retries": 19, "keep_count": 0},
    ],
)
def test_hostile_values_leave_one_revision_and_stay_quiet(values: dict[str, Any]) -> None:
    row, other = SchedulerFactory(), SchedulerFactory()
    values = {name: _text(value) for name, value in values.items()}
    Scheduler.objects.filter(pk=row.pk).update(**values)
    for _time in range(3):
        sweep()
    assert [one.author_kind for one in revisions(row.pk)] == ["code", "sql"]
    assert set(revisions(row.pk)[-1].snapshot.state) >= {"schedule", "timezone"}
    by_button(other)
    assert len(revisions(other.pk)) == 2


def _text(value: Any) -> Any:
    return value.encode("utf-16", "surrogatepass").decode("utf-16") if isinstance(value, str) else value


def test_a_row_that_cannot_be_read_is_left_alone_and_can_be_mended() -> None:
    if connection.vendor != "sqlite":
        pytest.skip("only SQLite stores such a value")
    row, other = SchedulerFactory(), SchedulerFactory()
    statement = "UPDATE scheduling_scheduler SET paused_at = '2026-13-45 00:00:00' WHERE id = %s"
    with connection.cursor() as cursor:
        cursor.execute(statement, [row.pk])
    Scheduler.objects.filter(pk=other.pk).update(time_limit=7)
    sweep()
    assert [len(revisions(one.pk)) for one in (row, other)] == [1, 2]
    Scheduler.objects.filter(pk=row.pk).update(paused_at=None)
    row.description = "mended"
    row.save()
    assert set(revisions(row.pk)[-1].changes) == {"description"}
    with connection.cursor() as cursor:
        cursor.execute(statement, [row.pk])
    Scheduler.objects.filter(pk=row.pk).only("stay_alive").get().delete()
    assert revisions(row.pk)[-1].kind == "deleted"


def test_a_revision_that_cannot_be_read_stops_nothing() -> None:
    if connection.vendor != "sqlite":
        pytest.skip("only SQLite stores such a value")
    row, other = SchedulerFactory(), SchedulerFactory()
    with connection.cursor() as cursor:
        cursor.execute("UPDATE scheduling_schedulerevision SET at = 'x', number = 'y' WHERE schedule = %s", [row.pk])
    Scheduler.objects.filter(pk=other.pk).update(time_limit=7)
    sweep()
    row.description = "saved"
    row.save()
    assert Scheduler.objects.get(pk=row.pk).description == "saved"
    assert len(revisions(other.pk)) == 2
    row.delete()
    assert not Scheduler.objects.filter(pk=row.pk).exists()


def test_a_fixture_brings_its_revisions_along(tmp_path: Any) -> None:
    row = SchedulerFactory()
    row.description = "two"
    row.save()
    file = tmp_path / "all.json"
    call_command("dumpdata", "scheduling.scheduler", "scheduling.schedulerevision", output=str(file), verbosity=0)
    facts = ("pk", "schedule", "number", "state", "edits", "author_kind")  # a fixture has milliseconds only
    before = list(ScheduleRevision.objects.order_by("pk").values(*facts))
    call_command("loaddata", str(file), verbosity=0)
    assert list(ScheduleRevision.objects.order_by("pk").values(*facts)) == before
    Scheduler.objects.filter(pk=row.pk).delete()
    call_command("loaddata", str(file), verbosity=0)
    found = revisions(row.pk)
    assert len({one.number for one in found}) == len(found)


@pytest.mark.django_db(transaction=True)
def test_two_edits_at_once_get_two_numbers() -> None:
    row = SchedulerFactory()

    def edit(column: str, value: Any) -> Callable[[], None]:
        def work() -> None:
            own = Scheduler.objects.get(pk=row.pk)
            setattr(own, column, value)
            own.save(update_fields=[column, "updated_at"])

        return work

    for number in range(3):
        at_once([edit("description", f"a{number}"), edit("time_limit", number + 1), edit("queue", f"q{number}")])
    found = revisions(row.pk)
    assert [one.number for one in found] == list(range(1, 11))
    assert all(len(one.changes) == 1 for one in found[1:])
    assert Scheduler.objects.get(pk=row.pk).revision == 10


@pytest.mark.django_db(transaction=True)
def test_several_processes_find_a_change_by_sql_once(caplog: pytest.LogCaptureFixture) -> None:
    row = SchedulerFactory()
    for number in range(1, 4):
        Scheduler.objects.filter(pk=row.pk).update(time_limit=number)
        found = at_once([lambda: note_found(row.pk, clock.now())] * 4)
        assert sorted(found, key=bool) == [None, None, None, number + 1]
    assert [one.number for one in revisions(row.pk)] == [1, 2, 3, 4]
    assert "cannot be written" not in caplog.text


def test_a_change_by_plain_sql_may_be_as_old_as_the_first_occurrence_that_is_not_on_record() -> None:
    """A spread or a hold lets a producer look later than at the nominal instant."""
    row = SchedulerFactory(schedule="*/3 * * * *", spread_seconds=600, next_run_at=NOON + timedelta(minutes=6))
    note_found(row.pk, NOON - timedelta(hours=1))
    Scheduler.objects.filter(pk=row.pk).update(
        status=False, next_nominal_at=NOON, next_run_at=NOON + timedelta(minutes=6)
    )
    note_found(row.pk, NOON + timedelta(minutes=9))
    newest = ScheduleRevision.objects.filter(schedule=row.pk).latest("number")
    assert (newest.kind, newest.unsure_from) == ("changed", NOON)
