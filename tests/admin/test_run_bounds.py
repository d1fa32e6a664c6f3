"""The pages show the overlap policies, the start deadline, the number of runs and the failures in a row."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone as clock

from scheduling.admin.executions.why import why
from scheduling.admin.schedulers.next_runs_panel import next_runs_panel
from scheduling.execution.claim import claim_due
from scheduling.models import Scheduler, SchedulerExecution
from scheduling.monitoring.findings.watched import paused_long
from scheduling.operations.next_runs import next_runs
from scheduling.operations.time_machine import runs_of
from tests.admin.conftest import logged_in, said
from tests.admin.pages import page_of, run_address
from tests.admin.scheduler_form import ADD, change, form, overview, worker
from tests.factories import GroupFactory, SchedulerExecutionFactory, SchedulerFactory, UserFactory, due

pytestmark = pytest.mark.django_db


def test_the_form_stores_all_bounds_and_the_page_says_them(editor: Client) -> None:
    values = form(
        worker=worker(), overlap="replace", start_within_seconds="10m", max_runs="3", pause_after_failures="2"
    )
    assert editor.post(ADD, values).status_code == 302
    row = Scheduler.objects.get()
    stored = (row.overlap, row.start_within_seconds, row.max_runs, row.pause_after_failures)
    assert stored == ("replace", 600, 3, 2)
    page = editor.get(overview(row)).content.decode()
    for words in (
        "cancel the old run",
        "at most 10 min after it was due",
        "0 of 3; then it is paused",
        "2 failures in a row",
    ):
        assert words in page
    assert 'value="10m"' in editor.get(change(row)).content.decode()


@pytest.mark.parametrize(
    ("values", "field", "sentence"),
    [
        ({"start_within_seconds": "0s"}, "start_within_seconds", "from 1 to 31,622,400"),
        ({"start_within_seconds": "1d", "stay_alive": "on"}, "start_within_seconds", "A service has no start deadline"),
        ({"max_runs": "0"}, "max_runs", "1"),
        ({"pause_after_failures": "101"}, "pause_after_failures", "100"),
        ({"overlap": "wait", "stay_alive": "on"}, "overlap", "A service never runs twice"),
        (
            {"max_runs": "2", "schedule": "", "date_time_0": "2036-03-10", "date_time_1": "12:00"},
            "max_runs",
            "runs once",
        ),
    ],
)
def test_a_contradiction_is_refused_at_its_field(
    editor: Client, values: dict[str, str], field: str, sentence: str
) -> None:
    errors = editor.post(ADD, form(worker=worker(), **values)).context["adminform"].form.errors
    assert sentence in " ".join(errors[field])
    assert not Scheduler.objects.exists()


def test_the_next_runs_end_with_the_number_of_runs(editor: Client) -> None:
    row = SchedulerFactory(schedule="0 * * * *", max_runs=3)
    Scheduler.objects.filter(pk=row.pk).update(runs_counted=1, counted_for=3)
    row.refresh_from_db()
    panel = next_runs_panel(row)
    assert "It is paused after its next 2 runs." in panel
    assert len(next_runs(row, 10)) == panel.count("<tr><td>") == 2
    assert len(runs_of(row, clock.now())) == 2
    # A number that is edited is counted anew, and one that is not keeps its count.
    address = reverse("admin:scheduling_scheduler_preview", args=["runs"])
    typed = {"schedule": "0 * * * *", "timezone": "UTC", "previewed": str(row.pk)}
    for most, left in (("3", 2), ("1", 1), ("", 10)):
        assert editor.get(address, {**typed, "max_runs": most}).content.decode().count("<tr><td>") == left
    hidden = SchedulerFactory(schedule="0 * * * *", max_runs=3, group=GroupFactory())
    Scheduler.objects.filter(pk=hidden.pk).update(runs_counted=2, counted_for=3)
    limited = logged_in(UserFactory(permissions=["scheduling.view_scheduler", "scheduling.change_scheduler"]))
    page = limited.get(address, {**typed, "max_runs": "3", "previewed": str(hidden.pk)}).content.decode()
    assert page.count("<tr><td>") == 3


def test_a_schedule_that_has_run_as_often_as_it_may_is_no_finding() -> None:
    row = SchedulerFactory(max_runs=1)
    claim_due(due(row, clock.now()).next_run_at, embedded=True)
    row.refresh_from_db()
    assert (row.status, row.pause_reason) == (False, "It has run once.")
    other = SchedulerFactory()
    other.status = False
    other.save()
    later = clock.now() + timedelta(days=2)
    assert [one.pk for one in paused_long(later)] == [other.pk]


def test_the_page_of_a_run_that_waits_says_for_which_one(viewer: Client) -> None:
    row = SchedulerExecutionFactory(blocked=True, start_by=clock.now() + timedelta(minutes=5))
    (waits, until) = why(row, clock.now())
    assert waits == "It waits until execution 7 is over."
    assert until.startswith("It must start in 5 min")
    page = viewer.get(page_of(row)).content.decode()
    assert waits in page
    assert "blocked" in page


def test_run_now_says_that_the_run_waits_and_may_start_it_beside(operator: Client) -> None:
    row = SchedulerFactory(schedule="0 * * * *", overlap="wait", params={})
    first = SchedulerExecutionFactory(scheduler=row, running=True, type="worker", target_id=row.worker_id)
    page = operator.get(run_address(row))
    assert f"It would not start now. It waits until execution {first.pk} is over." in page.content.decode()
    (message,) = said(operator.post(run_address(row), dict(page.context["c"].hidden), follow=True))
    assert message.endswith(f"It waits until execution {first.pk} is over.")
    hidden = dict(operator.get(run_address(row)).context["c"].hidden)
    assert said(operator.post(run_address(row), {**hidden, "beside": "on"}, follow=True)) == ["Started."]
    states = sorted(SchedulerExecution.objects.values_list("state", flat=True))
    assert states == ["blocked", "queued", "running"]


def test_the_preview_tells_no_more_runs_than_are_left(editor: Client) -> None:
    address = reverse("admin:scheduling_scheduler_preview", args=["runs"])
    row = SchedulerFactory(schedule="0 8 * * *", timezone="UTC", max_runs=5)
    Scheduler.objects.filter(pk=row.pk).update(runs_counted=3, counted_for=5)
    typed = {"schedule": "0 8 * * *", "timezone": "UTC"}

    def shown(client: Client = editor, **more: str) -> int:
        return client.get(address, typed | more).content.decode().count('class="sch-from-now"')

    assert shown() == 10
    assert shown(max_runs="4") == 4
    assert shown(max_runs="5", previewed=str(row.pk)) == 2
    assert shown(max_runs="6", previewed=str(row.pk)) == 6  # another bound begins the count anew
    assert shown(max_runs="0") == 0  # the panel says that it cannot be used
    Scheduler.objects.filter(pk=row.pk).update(group=GroupFactory())
    other = logged_in(UserFactory(permissions=["scheduling.view_scheduler", "scheduling.add_scheduler"]))
    assert shown(other, max_runs="5", previewed=str(row.pk)) == 5  # this user does not see the schedule
