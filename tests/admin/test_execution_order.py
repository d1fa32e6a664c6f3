"""An execution's page: its title, the order of its parts, and a record of the past that does not change."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone as clock

from scheduling.core.lifecycle import State
from scheduling.inbox.actions import discard
from scheduling.models import SchedulerExecution, Worker
from tests.factories import AttemptFactory, ProcessFactory, SchedulerExecutionFactory, SchedulerFactory
from tests.support import NOON

pytestmark = pytest.mark.django_db

LONG = (
    "Traceback (most recent call last):\n" + "\n".join(f'  File "shop.py", line {n}' for n in range(30)) + "\nOops: x"
)


def page(viewer: Client, row: SchedulerExecution) -> str:
    return viewer.get(reverse("admin:scheduling_schedulerexecution_change", args=[row.pk])).content.decode()


def steps(viewer: Client, row: SchedulerExecution) -> list[str]:
    """The lines of the timeline, each as its time and its first words."""
    found = re.findall(
        r'sch-step-at">(.*?)</span><span class="sch-step-gap">.*?<b>(.*?)</b>', page(viewer, row), re.DOTALL
    )
    return [" ".join(re.sub(r"<[^>]*>", "", part).strip() for part in step).strip() for step in found]


def test_the_title_is_the_schedule_and_its_time_in_its_own_zone(viewer: Client) -> None:
    scheduler = SchedulerFactory(description="Import orders DE", timezone="Europe/Berlin")
    row = SchedulerExecutionFactory(scheduler=scheduler, scheduled_at=NOON)
    text = page(viewer, row)
    assert f'<h1>Import orders DE, 2026-03-10 13:00 CET <small class="sch-quiet">no. {row.pk}</small></h1>' in text
    assert "<title>Import orders DE, 2026-03-10 13:00 CET |" in text


def test_a_run_of_today_has_no_date_in_its_title(viewer: Client) -> None:
    now = clock.now()
    row = SchedulerExecutionFactory(scheduler=SchedulerFactory(timezone="UTC"), scheduled_at=now)
    assert f"{row.scheduler}, {now:%H:%M} UTC |" in page(viewer, row)


def test_an_execution_without_a_schedule_has_the_title_of_its_target(viewer: Client) -> None:
    row = SchedulerExecutionFactory(scheduler=None, type="worker", target_name="tests.noop", scheduled_at=NOON)
    assert ", 2026-03-10 12:00 UTC |" in page(viewer, row)


def test_a_zone_that_sql_has_spoilt_does_not_break_the_title(viewer: Client) -> None:
    scheduler = SchedulerFactory(description="Odd")
    type(scheduler).objects.filter(pk=scheduler.pk).update(timezone="Nowhere/Atlantis")
    row = SchedulerExecutionFactory(scheduler=scheduler, scheduled_at=NOON)
    assert "Odd, 2026-03-10 12:00 UTC |" in page(viewer, row)


def test_error_and_output_come_first(viewer: Client) -> None:
    row = SchedulerExecutionFactory(failed=True, attempt=2)
    for number in (1, 2):
        AttemptFactory(execution=row, number=number, traceback=LONG)
    text = page(viewer, row)
    places = [text.index(part) for part in (
        "sch-lead", 'id="error"', 'id="output"', 'id="params"', 'id="timeline"', 'id="sch-attempts"', "Execution key",
    )]  # fmt: skip
    assert places == sorted(places)


def test_the_last_lines_of_a_long_traceback_are_open(viewer: Client) -> None:
    row = SchedulerExecutionFactory(failed=True, attempt=1)
    attempt = AttemptFactory(execution=row, number=1, traceback=LONG)
    text = page(viewer, row)
    shown, _, folded = text.partition('id="traceback"')
    assert "line 29" in shown
    assert "line 20" not in shown
    assert "Whole traceback (32 lines)" in folded
    assert "line 0\n" in folded
    attempt.traceback = "Traceback (most recent call last):\nOops: x"
    attempt.save()
    text = page(viewer, row)
    assert "Oops: x" in text
    assert 'id="traceback"' not in text


def test_a_single_attempt_is_told_once(viewer: Client) -> None:
    row = SchedulerExecutionFactory(succeeded=True, attempt=1)
    AttemptFactory(execution=row, number=1, outcome="succeeded")
    assert "sch-attempts" not in page(viewer, row)
    SchedulerExecution.objects.filter(pk=row.pk).update(attempt=2)
    AttemptFactory(execution=row, number=2, outcome="succeeded")
    assert "sch-attempts" in page(viewer, row)


def test_the_target_has_its_title_and_its_raw_name_in_the_title_attribute(viewer: Client) -> None:
    Worker.objects.filter(name="tests.noop").update(title="Import orders")
    row = SchedulerExecutionFactory(failed=True, attempt=1)
    tag = '<span title="tests.noop">Import orders</span>'
    assert tag in page(viewer, row)
    for name, query in (("schedulerexecution", {}), ("failedexecution", {"group": "each"}), ("failedexecution", {})):
        assert tag in viewer.get(reverse(f"admin:scheduling_{name}_changelist"), query).content.decode()


def test_a_failure_of_old_code_says_so(viewer: Client) -> None:
    now = clock.now()
    row = SchedulerExecutionFactory(failed=True, attempt=1, consumer="box-1", started_at=now - timedelta(minutes=1))
    process = ProcessFactory(container_id="box-1", code_at=now - timedelta(minutes=9))
    assert "restart it" not in page(viewer, row)
    process.code_changed_at = now - timedelta(minutes=5)
    process.save()
    text = page(viewer, row)
    assert "Attempt 1 ran old code, so the traceback may show lines that did not run." in text
    assert re.search(
        r"The consumer box-1 runs the code of [-\d: ]+ UTC, but the files changed at [-\d: ]+ UTC: restart it\.", text
    )
    process.code_changed_at = now - timedelta(seconds=10)  # after the attempt
    process.save()
    assert "ran old code" not in page(viewer, row)
    assert "restart it" in page(viewer, row)
    process.stopped_at = now
    process.save()
    assert "restart it" not in page(viewer, row)


@pytest.mark.parametrize("parked", [False, True])
def test_the_past_does_not_change(viewer: Client, parked: bool) -> None:
    """The column with the time of publishing later holds the time at which the failed message was parked."""
    row = SchedulerExecutionFactory(
        running=True, scheduled_at=NOON, executed_at=NOON, published_at=NOON, started_at=NOON + timedelta(seconds=1)
    )
    before = steps(viewer, row)
    assert before[2].endswith("published")
    ended = NOON + timedelta(seconds=5)
    AttemptFactory(execution=row, number=1, started_at=row.started_at, finished_at=ended)
    columns: dict[str, Any] = {"published_at": ended + timedelta(seconds=1)} if parked else {}
    failed = SchedulerExecution.objects.filter(pk=row.pk)
    failed.update(state=State.FAILED.value, finished_at=ended, wake_at=None, error_class="ValueError", **columns)
    row.refresh_from_db()
    then = steps(viewer, row)
    assert [step.split()[-1] for step in then[:3]] == [step.split()[-1] for step in before[:3]]
    assert any("parked" in step for step in then) == parked
    assert discard([row.pk], "ada", "known") == [row.pk]
    row.refresh_from_db()
    assert steps(viewer, row)[:-1] == then[:-1]


def test_a_later_publish_does_not_hide_the_first_one(viewer: Client) -> None:
    row = SchedulerExecutionFactory(
        scheduled_at=NOON, executed_at=NOON, published_at=NOON + timedelta(seconds=60), attempt=1, retry_base=1
    )
    AttemptFactory(
        execution=row, number=1, started_at=NOON + timedelta(seconds=1), finished_at=NOON + timedelta(seconds=2)
    )
    words = " / ".join(steps(viewer, row))
    assert re.search(r"claimed / published / .*attempt 1 started.* / .*published for the next attempt", words)


@pytest.mark.parametrize("model", ["scheduler", "schedulerexecution", "failedexecution", "worker", "process", "replay"])
def test_a_wrong_number_leads_to_the_list(admin_client: Client, model: str) -> None:
    response = admin_client.get(reverse(f"admin:scheduling_{model}_change", args=["999999999"]), follow=True)
    wanted = "schedulerexecution" if model == "failedexecution" else model
    assert response.redirect_chain[-1][0] == reverse(f"admin:scheduling_{wanted}_changelist")
    assert "“999999999”. It may be deleted." in response.content.decode()


@pytest.mark.parametrize(
    ("model", "title"),
    [("scheduler", "Schedules"), ("worker", "Workers"), ("reminder", "Reminders"), ("process", "Processes")],
)
def test_headings_say_the_thing(admin_client: Client, model: str, title: str) -> None:
    assert f"<h1>{title}</h1>" in admin_client.get(reverse(f"admin:scheduling_{model}_changelist")).content.decode()


def test_the_heading_of_an_object_is_its_name(admin_client: Client, viewer: Client) -> None:
    scheduler = SchedulerFactory(description="Import orders DE")
    worker = Worker.objects.get(name="tests.noop")
    for client in (admin_client, viewer):
        text = client.get(reverse("admin:scheduling_worker_change", args=[worker.pk])).content.decode()
        assert f"<h1>Worker {worker}</h1>" in text
        text = client.get(reverse("admin:scheduling_scheduler_change", args=[scheduler.pk])).content.decode()
        assert "Change schedule" not in text
        assert "View schedule" not in text


@pytest.mark.parametrize(
    ("model", "words"),
    [
        ("reminder", "A reminder is a message"), ("channel", "A channel is where messages go"),
        ("calendar", "A calendar has dates"),
        ("process", "A process is one start"), ("replay", "A replay is"),
        ("schedulerexecution", "An execution is"), ("scheduler", "A schedule"),
    ],
)  # fmt: skip
def test_an_empty_list_says_what_it_is_for(admin_client: Client, model: str, words: str) -> None:
    address = reverse(f"admin:scheduling_{model}_changelist")
    assert words in admin_client.get(address).content.decode()


def test_a_list_that_the_filters_empty_says_so(admin_client: Client) -> None:
    SchedulerFactory()
    text = admin_client.get(reverse("admin:scheduling_scheduler_changelist"), {"status__exact": "0"}).content.decode()
    assert "Nothing matches the search and the filters." in text


def test_a_run_that_never_started_shows_no_box_for_output(viewer: Client) -> None:
    hidden = 'id="output" hidden'
    assert hidden in page(viewer, SchedulerExecutionFactory(skipped=True))
    assert hidden not in page(viewer, SchedulerExecutionFactory())  # it waits, and the page follows it
    assert hidden not in page(viewer, SchedulerExecutionFactory(succeeded=True))


def test_missing_parameters_are_a_sentence(viewer: Client) -> None:
    assert "This run has no parameters of its own." in page(viewer, SchedulerExecutionFactory(params={}))
    assert "This run has no parameters of its own." not in page(viewer, SchedulerExecutionFactory(params={"days": 1}))
