"""`cron add`, `edit`, `show`, `pause`, `resume`, `next` and `why`."""

from __future__ import annotations

import re
from datetime import UTC, datetime

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import User
from django.test import override_settings
from django.utils import timezone as clock
from django.utils import translation

from scheduling.core.run_sentences import NOT_SWITCHED_OVER
from scheduling.models import Scheduler, ScheduleRevision, SchedulerExecution
from scheduling.models.schedule_revision import REASON_LENGTH
from scheduling.operations.audit import read
from scheduling.operations.execution_shapes import ExecutionShape
from scheduling.operations.next_run_shapes import NextRunsShape
from scheduling.operations.shapes import ScheduleShape
from scheduling.operations.why_shapes import WhyShape
from tests.factories import FailedExecutionFactory, SchedulerExecutionFactory, SchedulerFactory, UserFactory
from tests.http.client import ApiClient
from tests.management.cron.calls import cron

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def boss() -> None:
    """The only active superuser, in whose name a person at the terminal changes something."""
    UserFactory(username="boss", superuser=True)


def test_a_schedule_is_made_changed_paused_and_resumed() -> None:
    values = ["--schedule", "0 3 * * *", "--worker", "tests.give", "--set", "time_limit=60", "--set", "status=true"]
    made = cron("add", "--name", "nightly", *values, "--param", "value=[1, 2]", "--json")
    assert (made.code, made.json["kind"], made.json["version"]) == (0, "schedule", 1)
    shape = ScheduleShape.model_validate(made.json["schedule"])
    assert (shape.time_limit, shape.params, shape.user) == (60, {"value": [1, 2]}, "boss")
    pk = str(shape.id)

    assert cron("edit", "nightly", "--description", "7", "--set", "queue=reports", "--param", "value=x").code == 0
    row = Scheduler.objects.get(pk=pk)
    assert (row.description, row.queue, row.params, row.time_limit) == ("7", "reports", {"value": "x"}, 60)
    assert cron("edit", "nightly", "--set", "time_limit=null", "--params", "{}").code == 0
    row.refresh_from_db()
    assert (row.time_limit, row.params) == (None, {})
    late = cron("edit", "nightly", "--expect", shape.version, "--description", "8", "--json")
    assert (late.code, late.json["code"]) == (4, "CHANGED")

    assert "Paused" in cron("pause", "nightly", "--reason", "The warehouse moves").out
    shown = cron("show", pk).out
    assert all(text in shown for text in ("nightly", "The warehouse moves", "tests.give (worker)", "reports"))
    assert cron("resume", pk, "--json").json["schedule"]["status"] is True
    entries = list(LogEntry.objects.filter(object_id=pk))
    assert len(entries) == 5
    assert all(entry.user.username == "boss" and read(entry)[0] == "command" for entry in entries)


def test_the_imported_schedules_are_resumed_together() -> None:
    waiting = [
        SchedulerFactory(name=f"from-{number}", status=False, pause_reason=reason)
        for number, reason in enumerate(NOT_SWITCHED_OVER)
    ]
    stays = [SchedulerFactory(status=False, pause_reason=reason) for reason in ("It was disabled in Celery beat.", "")]
    assert cron("resume", "--imported", waiting[0].pk).code == 2
    assert cron("resume").code == 2
    UserFactory(username="ann")
    assert cron("resume", "--imported", "--as", "ann").code == 4
    ended = cron("resume", "--imported")
    assert (ended.code, ended.out) == (0, "Imported schedules resumed: 2. Still paused: 0.\n")
    assert [Scheduler.objects.get(pk=row.pk).status for row in [*waiting, *stays]] == [True, True, False, False]


def test_an_imported_schedule_that_is_refused_keeps_no_other_one_back() -> None:
    bad, good = (
        SchedulerFactory(name=f"from-{number}", status=False, pause_reason=NOT_SWITCHED_OVER[0]) for number in (1, 2)
    )
    Scheduler.objects.filter(pk=bad.pk).update(schedule="no cron at all")
    ended = cron("resume", "--imported", "--json")
    assert (ended.code, ended.json["resumed"]) == (1, [good.pk])
    assert [row["id"] for row in ended.json["refused"]] == [bad.pk]
    assert f"Schedule {bad.pk} (from-1) stays paused: " in ended.err


def test_a_german_reads_german_words() -> None:
    row = SchedulerFactory(name="nightly")
    SchedulerExecutionFactory(scheduler=row, state="skipped", reason="Retries are off.", finished_at=clock.now())
    paused = SchedulerFactory(name="paused", status=False, pause_reason=NOT_SWITCHED_OVER[0])
    english = cron("show", "paused").out
    assert re.search(r"^health +paused$", english, re.MULTILINE)
    assert re.search(rf"^reason +{NOT_SWITCHED_OVER[0]}$", english, re.MULTILINE)
    with translation.override("de"):
        told = "".join(cron(*line.split()).out for line in ("show nightly", "show paused", "list", "runs"))
        assert cron("show", paused.pk, "--json").json["schedule"]["health"] == "paused"
    assert "Aus einer Crontab importiert und noch nicht umgestellt." in told
    assert re.search(r"^Zustand +ausgelassen$", told, re.MULTILINE)
    assert "Wiederholungen sind" in told
    assert not re.search(r"\b(skipped|healthy|switched|off)\b", told)


def test_an_interval_is_made_and_told() -> None:
    every = "@every 2w on mon,fri at 08:00 from 2026-01-09"
    made = cron("add", "--name", "often", "--schedule", every, "--timezone", "UTC", "--worker", "tests.noop", "--json")
    assert made.json["schedule"]["schedule"] == every
    found = NextRunsShape.model_validate(cron("next", "often", "--count", "2", "--json").json["next_runs"])
    assert found.words == "At 08:00, every second week on Monday and Friday, counted from 2026-01-09"
    assert [(run.weekday() in (0, 4), run.hour) for run in found.runs] == [(True, 8), (True, 8)]
    refused = cron("edit", "often", "--schedule", "@every 10s", "--json")
    assert (refused.code, refused.json["problems"][0]["field"]) == (4, "schedule")
    assert "CRON_SECONDS" in refused.json["problems"][0]["message"]
    with override_settings(CRON_SECONDS=True):
        assert cron("edit", "often", "--schedule", "@every 10s from 2026-01-05T00:00:05Z").code == 0
        assert re.search(r":[0-5]5 UTC  (in|now)", cron("next", "often", "--count", "1").out)
        assert re.search(r"next run +.*:[0-5]5 UTC", cron("show", "often").out)
    off = cron("next", "often", "--json")  # the setting is false again
    assert (off.code, "CRON_SECONDS" in off.json["next_runs"]["problem"]) == (1, True)


def test_a_schedule_is_deleted_after_a_yes() -> None:
    row = SchedulerFactory(name="old")
    kept = SchedulerExecutionFactory(scheduler=row, succeeded=True)
    asked = cron("delete", "old")
    assert (asked.code, Scheduler.objects.filter(pk=row.pk).exists()) == (1, True)
    assert cron("delete", "old", "--yes", "--json").json == {"version": 1, "kind": "deleted", "id": row.pk}
    kept.refresh_from_db()
    assert kept.scheduler_id is None
    assert cron("delete", "old", "--yes").code == 3

    kept_too = SchedulerFactory(name="kept")
    asked = cron("delete", "kept", "--json")
    assert (asked.code, asked.json["kind"], "Give --yes" in asked.json["said"]) == (1, "refused", True)
    assert cron("delete", "kept", typed="n\n").code == 1
    assert Scheduler.objects.filter(pk=kept_too.pk).exists()
    assert cron("delete", "ke", typed="y\n").code == 0
    assert not Scheduler.objects.filter(pk=kept_too.pk).exists()


def test_a_script_changes_only_what_it_names_in_full() -> None:
    SchedulerFactory(name="report")
    other = SchedulerFactory(name="report-yearly", description="report it", rare=True)
    FailedExecutionFactory(scheduler=other)
    assert cron("delete", "report", "--yes").code == 0
    for verb in (
        ["delete", "report", "--yes"],
        ["edit", "report", "--description", "x"],
        ["pause", "report"],
        ["resume", "report"],
        ["run", "report"],
        ["republish", "--schedule", "report", "--yes"],
        ["discard", "--schedule", "report", "--yes", "--reason", "x"],
    ):
        refused = cron(*verb, "--json")
        assert (refused.code, refused.json["code"]) == (3, "NOT_FOUND"), verb
        assert f"{other.pk} (report-yearly)" in refused.err, verb
    assert cron("delete", "report", "--yes", typed="").code == 3
    assert Scheduler.objects.filter(pk=other.pk, status=True, description="report it").exists()
    assert list(SchedulerExecution.objects.values_list("state", flat=True)) == ["failed"]
    assert cron("show", "report").code == 0
    assert "Paused" in cron("pause", "report", typed="").out


def test_a_name_of_digits_is_found_if_no_id_is_that_number() -> None:
    named = SchedulerFactory(name="99999999")
    assert cron("show", "99999999", "--json").json["schedule"]["id"] == named.pk
    SchedulerFactory(name="888888881")
    assert cron("show", "88888888").code == 3
    first = SchedulerFactory(name=str(named.pk))
    assert cron("delete", named.pk, "--yes", "--json").json["id"] == named.pk
    assert Scheduler.objects.filter(pk=first.pk).exists()


def test_each_wrong_value_has_a_sentence() -> None:
    wrong = cron("add", "--set", "time_limit=-1", "--set", "overlap=maybe", "--worker", "", "--json")
    assert (wrong.code, wrong.json["code"]) == (4, "INVALID")
    assert {problem["field"] for problem in wrong.json["problems"]} == {"time_limit", "overlap", "worker"}
    assert len(wrong.err.splitlines()) == 3
    for options in (
        ["--schedule", "0 3 * *", "--worker", "tests.noop"],
        ["--schedule", "0 3 * * *", "--worker", "tests.noop", "--name", "Upper case"],
        ["--schedule", "0 3 * * *", "--worker", "tests.noop", "--param", "region"],
        ["--schedule", "0 3 * * *", "--worker", "tests.noop", "--params", "[1]"],
        ["--schedule", "0 3 * * *", "--worker", "tests.noop", "--params", "{"],
        ["--schedule", "0 3 * * *", "--worker", "tests.noop", "--set", "id=1"],
        ["--schedule", "0 3 * * *", "--worker", "tests.unknown"],
    ):
        found = cron("add", *options)
        assert (found.code, found.out) == (4, ""), options
        assert found.err.strip(), options
    assert not Scheduler.objects.filter(worker__name="tests.noop").exists()
    SchedulerFactory(name="one")
    assert cron("edit", "one").code == 4


def test_a_secret_is_masked_and_kept() -> None:
    row = SchedulerFactory(name="secret", handler="tests.keep", params={"token": "hunter2", "days": 1})
    shown = cron("show", "secret")
    assert "hunter2" not in shown.out + cron("show", "secret", "--json").out
    assert cron("edit", "secret", "--param", "days=2").code == 0
    row.refresh_from_db()
    assert row.params == {"token": "hunter2", "days": 2}
    assert "hunter2" not in "".join(LogEntry.objects.values_list("change_message", flat=True))


def test_names_that_match_several_schedules_or_none() -> None:
    SchedulerFactory(name="report-eu")
    SchedulerFactory(name="report-us")
    several = cron("show", "report", "--json")
    assert (several.code, several.json["code"]) == (3, "AMBIGUOUS")
    assert "report-eu" in several.err
    assert [cron("show", name).code for name in ("nothing", "999999999", "9" * 40, "\x1b[2J")] == [3, 3, 3, 3]
    assert "\x1b" not in cron("show", "\x1b[2J").err


def test_a_user_without_permission_changes_nothing() -> None:
    row = SchedulerFactory(name="theirs")
    UserFactory(username="ann", permissions=["scheduling.view_scheduler"])
    values = ["--schedule", "0 3 * * *", "--worker", "tests.noop"]
    for arguments in (
        ["pause", "theirs"],
        ["edit", "theirs", "--description", "x"],
        ["run", "theirs"],
        ["add", *values],
    ):
        refused = cron(*arguments, "--as", "ann", "--json")
        assert (refused.code, refused.json["code"]) == (4, "FORBIDDEN"), arguments
    row.refresh_from_db()
    assert row.status
    assert Scheduler.objects.filter(worker__name="tests.noop").count() == 1


def test_next_and_why() -> None:
    row = SchedulerFactory(name="daily", timezone="Europe/Madrid", schedule="30 2 * * *")
    Scheduler.objects.filter(pk=row.pk).update(created_at=datetime(2020, 1, 1, tzinfo=UTC), planned_at=None)
    runs = NextRunsShape.model_validate(cron("next", "daily", "--count", 100, "--json").json["next_runs"])
    assert (len(runs.runs), runs.words) == (100, "At 02:30")
    assert len(cron("next", "daily", "--count", 2).out.splitlines()) == 2

    at = datetime(2025, 11, 3, 1, 30, tzinfo=UTC)
    run = SchedulerExecutionFactory(scheduler=row, succeeded=True, execution_key="cron-2025-11-3-1-30", scheduled_at=at)
    for typed in (["2025-11-03", "02:30"], ["2025-11-03T02:30+01:00"], ["2025-11-03 01:30Z"]):
        (answer,) = (WhyShape.model_validate(one) for one in cron("why", "daily", *typed, "--json").json["answers"])
        assert (answer.answer, answer.execution, answer.state, answer.at) == ("recorded", run.pk, "succeeded", at)
    assert "It ran and succeeded" in cron("why", "daily", "2025-11-03 02:30").out
    twice = cron("why", "daily", "2025-10-26", "02:30", "--json").json["answers"]
    assert [one["answer"] for one in twice] == ["no_record", "not_due"]
    due = datetime(2030, 7, 1, 0, 30, tzinfo=UTC)
    Scheduler.objects.filter(pk=row.pk).update(next_run_at=due)
    assert all("2030-07-01 02:30 CEST" in cron(*verb).out for verb in (["show", "daily"], ["list", "daily"]))
    shown_runs = cron("show", "daily").out.partition("Next runs")[2].splitlines()[1:4]
    assert [line.split()[1] for line in shown_runs] == ["02:30"] * 3
    assert {line.split()[2] for line in shown_runs} <= {"CET", "CEST"}
    near = cron("why", "daily", "2025-11-03 02:31")
    assert f"Before: 2025-11-03 02:30 CET  execution {run.pk} succeeded" in near.out
    skipped = cron("why", "daily", "2025-03-30 02:30", "--json").json["answers"]
    assert "skipped" in skipped[0]["note"]
    assert cron("why", "daily", "yesterday").code == 4
    shown = cron("show", "daily", "--json").json
    assert [ExecutionShape.model_validate(one).id for one in shown["executions"]] == [run.pk]

    Scheduler.objects.filter(pk=row.pk).update(schedule="never")
    broken = cron("next", "daily")
    assert (broken.code, broken.out) == (1, "")
    once = SchedulerFactory(name="once", once=True)
    assert len(cron("next", "once", "--json").json["next_runs"]["runs"]) == 1
    assert once.date_time is not None
    assert once.date_time > clock.now()


def test_the_reason_of_a_change_is_kept_by_its_revision() -> None:
    values = ["--schedule", "0 3 * * *", "--worker", "tests.noop"]
    pk = cron("add", "--name", "nightly", *values, "--reason", "a\n new   shop", "--json").json["schedule"]["id"]
    cron("edit", "nightly", "--schedule", "0 4 * * *", "--reason", "it opens later")
    cron("delete", "nightly", "--yes", "--reason", "x" * 600)
    reasons = list(ScheduleRevision.objects.filter(schedule=pk).order_by("number").values_list("reason", flat=True))
    assert reasons == ["a new shop", "it opens later", "x" * REASON_LENGTH]
    boss = ApiClient(User.objects.get(username="boss"))
    made = boss.post("schedulers?reason=by+the+pipeline", {"schedule": "0 3 * * *", "worker": "tests.noop"})
    assert ScheduleRevision.objects.get(schedule=made.json()["id"]).reason == "by the pipeline"
