"""The pages of backfills: the form, what would run, the start, the list, and pause, resume and cancel."""

from __future__ import annotations

import re
from datetime import UTC
from typing import Any

import pytest
from bs4 import BeautifulSoup
from django.contrib.admin.models import LogEntry
from django.test import Client
from django.urls import reverse
from django.utils import timezone as clock

from scheduling.admin.backfills.words import STATES
from scheduling.admin.common.viewer import Viewer
from scheduling.admin.dashboard import tiles
from scheduling.admin.ui.times import EMPTY
from scheduling.core.occurrences import cron_key
from scheduling.models import Backfill, Scheduler, SchedulerExecution
from tests.admin.conftest import logged_in, said
from tests.execution.backfills import MONDAY, made, sweep_all
from tests.factories import BackfillFactory, GroupFactory, SchedulerExecutionFactory, SchedulerFactory, UserFactory

pytestmark = pytest.mark.django_db
LIST = reverse("admin:scheduling_scheduler_changelist")
RANGE = {
    "since_0": "2026-01-05", "since_1": "00:00", "until_0": "2026-01-07", "until_1": "23:59", "order": "oldest",
    "per_minute": "6000", "obey_overlap": "on", "reason": "the depot  was closed",
}  # fmt: skip


def page_of(row: Scheduler) -> str:
    return reverse("admin:scheduling_scheduler_backfill", args=[row.pk])


def hidden(response: Any) -> dict[str, Any]:
    """The fields that the button of a confirmation page posts."""
    found: dict[str, Any] = {}
    for field in BeautifulSoup(response.content, "html.parser").select("form.sch-form input[type=hidden]"):
        found.setdefault(str(field["name"]), []).append(field["value"])
    found.pop("csrfmiddlewaretoken", None)
    return found


def start(client: Client, address: str, **values: Any) -> Any:
    """Ask for the range, look at what would run, and start it."""
    shown = client.post(address, {**RANGE, **values})
    return client.post(address, hidden(shown), follow=True)


def test_every_state_has_its_icon() -> None:
    assert set(STATES) == set(Backfill.State)


def test_the_range_is_shown_before_it_is_started(operator: Client) -> None:
    row = SchedulerFactory(schedule="0 0 * * *", timezone="Europe/Madrid", description="Nightly")
    night = MONDAY.replace(hour=23)  # the midnight of Tuesday in Madrid
    ran = SchedulerExecutionFactory(succeeded=True, scheduler=row, scheduled_at=night, execution_key=cron_key(night))
    assert page_of(row) in operator.get(reverse("admin:scheduling_scheduler_change", args=[row.pk])).content.decode()
    form = operator.get(page_of(row)).content.decode()
    assert "The times are those of the zone Europe/Madrid." in form
    shown = operator.post(page_of(row), RANGE)
    text = " ".join(BeautifulSoup(shown.content, "html.parser").get_text(" ").split())
    assert "2 runs will be made, of 3 instants in the range." in text
    assert f"2026-01-06 00:00 CET has run as execution {ran.pk}" in text
    assert "2026-01-05 00:00 CET" in text
    assert not Backfill.objects.exists()
    done = operator.post(page_of(row), hidden(shown), follow=True)
    one = Backfill.objects.get()
    assert said(done) == ["The backfill of 3 instants is started."]
    assert (one.requested_by, one.reason, one.total) == ("operator", "the depot was closed", 3)
    assert done.redirect_chain[-1][0] == reverse("admin:scheduling_backfill_change", args=[one.pk])
    operator.post(page_of(row), hidden(shown))  # a second click
    assert Backfill.objects.count() == 1
    sweep_all()
    assert len(made(row)) == 2
    text = operator.get(reverse("admin:scheduling_backfill_change", args=[one.pk])).content.decode()
    assert "3 of 3 instants are done; runs made: 2; on record already: 1." in text
    runs = SchedulerExecution.objects.filter(trigger="backfill")
    for run in [*runs, ran]:
        assert reverse("admin:scheduling_schedulerexecution_change", args=[run.pk]) in text
    listed = operator.get(reverse("admin:scheduling_schedulerexecution_changelist") + "?trigger=backfill")
    assert {found.pk for found in listed.context["cl"].result_list} == {run.pk for run in runs}
    entries = LogEntry.objects.values_list("change_message", flat=True)
    assert [entry for entry in entries if "3 occurrences from 2026-01-0" in entry]
    # The same range shows that nothing is left.
    again = operator.post(page_of(row), RANGE).content.decode()
    assert "All of them are on record already, so nothing would run." in again
    assert "Start the backfill" not in again


def test_an_edit_between_the_two_pages_is_shown_first(operator: Client) -> None:
    row = SchedulerFactory(schedule="0 0 * * *")
    shown = operator.post(page_of(row), RANGE)
    Scheduler.objects.filter(pk=row.pk).update(schedule="0 6 * * *")
    again = operator.post(page_of(row), hidden(shown))
    assert "The instants have changed since you looked." in again.content.decode()
    assert not Backfill.objects.exists()
    operator.post(page_of(row), hidden(again))
    sweep_all()
    assert {at.hour for at in made(row)} == {6}


def test_several_schedules_are_backfilled_together(operator: Client) -> None:
    rows = [SchedulerFactory(schedule=f"0 {hour} * * *") for hour in range(3)]
    values = {"action": "backfill_selected", "_selected_action": [row.pk for row in rows]}
    asked = operator.post(LIST, values)
    shown = operator.post(LIST, {**hidden(asked), **RANGE})
    assert "9 runs will be made, of 9 instants in the range." in shown.content.decode()
    operator.post(LIST, hidden(shown))
    assert Backfill.objects.count() == 3
    assert Backfill.objects.values("request").distinct().count() == 1
    sweep_all()
    assert [len(made(row)) for row in rows] == [3, 3, 3]
    service = SchedulerFactory(stay_alive=True, description="Listener")
    values["_selected_action"] = [rows[0].pk, service.pk]
    refused = operator.post(LIST, {**hidden(operator.post(LIST, values)), **RANGE}).content.decode()
    assert "Listener: It is a service" in refused


@pytest.mark.parametrize(
    ("values", "wanted"),
    [
        ({"until_0": "2026-01-01"}, "The end of the range lies before its beginning."),
        ({"until_0": "2999-01-01"}, "has not passed yet"),
        ({"since_0": "1800-01-01"}, ""),
        ({"since_0": "0001-01-01"}, "Type a date"),
        ({"since_0": ""}, "This field is required."),
        ({"since_0": "2026-02-31"}, "Enter a valid date"),
        ({"since_1": "<b>"}, "Enter a valid time"),
        ({"per_minute": "0"}, "greater than or equal to 1"),
        ({"per_minute": "9" * 400}, ""),
        ({"order": "sideways"}, "Select a valid choice"),
        ({"seen": "\u0000"}, ""),
    ],
)
def test_hostile_values_start_nothing(operator: Client, values: dict[str, str], wanted: str) -> None:
    row = SchedulerFactory(schedule="* * * * *")
    response = operator.post(page_of(row), {**RANGE, **values})
    assert response.status_code == 200
    assert wanted in response.content.decode()
    assert not Backfill.objects.exists()


def test_a_range_with_too_many_instants_is_refused_with_a_sentence(operator: Client) -> None:
    row = SchedulerFactory(schedule="* * * * *")
    text = operator.post(page_of(row), {**RANGE, "since_0": "2016-01-05"}).content.decode()
    assert re.search(r"The range has 5,26\d,\d{3} occurrences .* at most 1,000", text)


def test_a_late_start_does_not_count_for_the_lag_of_the_dashboard(operator: Client) -> None:
    columns = {"scheduled_at": MONDAY, "started_at": clock.now(), "attempt": 1, "scheduler": SchedulerFactory()}
    SchedulerExecutionFactory(succeeded=True, trigger="backfill", **columns)
    viewer = Viewer(UserFactory(superuser=True), clock.now(), UTC)
    assert tiles._lag(viewer)["value"] == EMPTY
    SchedulerExecutionFactory(succeeded=True, execution_key="cron-late", **columns)
    assert tiles._lag(viewer)["value"] != EMPTY


def test_it_is_paused_resumed_and_cancelled_by_buttons(operator: Client) -> None:
    one = BackfillFactory()
    page = reverse("admin:scheduling_backfill_change", args=[one.pk])
    for verb, words in (("pause", "It is paused."), ("resume", "It goes on."), ("cancel", "It is cancelled.")):
        address = reverse(f"admin:scheduling_backfill_{verb}", args=[one.pk])
        assert address in operator.get(page).content.decode()
        assert said(operator.post(address, follow=True))[0].startswith(words)
        assert operator.get(address).status_code == 405
    assert "Cancelled by operator." in operator.get(page).content.decode()
    assert said(operator.post(address, follow=True)) == ["The backfill is over already. Nothing was changed."]


def test_a_viewer_sees_it_and_changes_nothing(viewer: Client) -> None:
    one = BackfillFactory()
    page = viewer.get(reverse("admin:scheduling_backfill_change", args=[one.pk])).content.decode()
    assert "1 of 3 instants are done" in page
    for verb in ("pause", "resume", "cancel"):
        address = reverse(f"admin:scheduling_backfill_{verb}", args=[one.pk])
        assert address not in page
        assert viewer.post(address).status_code == 403
    assert viewer.get(page_of(one.scheduler)).status_code == 403
    assert viewer.get(reverse("admin:scheduling_backfill_changelist")).status_code == 200


def test_a_backfill_of_another_group_is_not_seen() -> None:
    one = BackfillFactory(group=GroupFactory(), reason="secret reason")
    client = logged_in(UserFactory(permissions=["scheduling.view_scheduler", "scheduling.backfill_scheduler"]))
    page = reverse("admin:scheduling_backfill_change", args=[one.pk])
    assert client.get(page).status_code == 302
    assert "secret" not in client.get(reverse("admin:scheduling_backfill_changelist")).content.decode()
    client.post(reverse("admin:scheduling_backfill_cancel", args=[one.pk]))
    one.refresh_from_db()
    assert one.state == "running"


def test_the_run_of_a_hidden_group_is_not_named() -> None:
    row = SchedulerFactory(schedule="0 0 * * *")
    ran = SchedulerExecutionFactory(
        succeeded=True, scheduler=row, scheduled_at=MONDAY, execution_key=cron_key(MONDAY), group=GroupFactory()
    )
    names = ("view_scheduler", "backfill_scheduler", "view_schedulerexecution")
    client = logged_in(UserFactory(permissions=[f"scheduling.{name}" for name in names]))
    text = client.post(page_of(row), RANGE).content.decode()
    assert "2026-01-05 00:00 UTC is on record already" in text
    assert f"execution {ran.pk}" not in text
