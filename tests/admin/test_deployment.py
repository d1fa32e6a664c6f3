"""Every page says that the database is held, acts are refused with the reason, and the page Deployment confirms it."""

from __future__ import annotations

import pytest
from django.contrib.admin.models import LogEntry
from django.test import Client
from django.urls import reverse

from scheduling.models import Deployment, SchedulerExecution
from scheduling.processes.guard import guard
from tests.admin.conftest import logged_in
from tests.factories import FailedExecutionFactory, SchedulerFactory, UserFactory

pytestmark = pytest.mark.django_db

SAID = "Nothing is claimed, started or published."
PAGE = "admin:scheduling_deployment_changelist"

LISTS = (
    "dashboard", "scheduler", "schedulerexecution", "failedexecution", "worker", "reminder", "channel", "process",
    "replay", "artefact", "deployment",
)  # fmt: skip


@pytest.fixture
def anna(db: None) -> Client:
    return logged_in(UserFactory(username="anna", superuser=True))


def copied() -> None:
    Deployment.objects.update(name="<b>production</b>", fingerprints="0" * 32)


@pytest.mark.parametrize("model", LISTS)
def test_every_page_says_so_until_it_is_confirmed(anna: Client, model: str) -> None:
    address = reverse(f"admin:scheduling_{model}_changelist")
    assert SAID not in anna.get(address).content.decode()
    copied()
    for _number in range(2):
        text = anna.get(address).content.decode()
        assert SAID in text
        assert reverse(PAGE) in text
        assert "<b>production" not in text


def test_a_row_and_its_history_say_so_too(anna: Client) -> None:
    row = SchedulerFactory()
    copied()
    for page in ("change", "history", "delete"):
        assert SAID in anna.get(reverse(f"admin:scheduling_scheduler_{page}", args=[row.pk])).content.decode()


def test_run_now_and_republish_start_nothing_and_say_why(anna: Client) -> None:
    row, failed = SchedulerFactory(), FailedExecutionFactory()
    copied()
    for address in (
        reverse("admin:scheduling_scheduler_run", args=[row.pk]),
        reverse("admin:scheduling_failedexecution_republish", args=[failed.pk]),
    ):
        page = anna.get(address)
        hidden = dict(page.context["c"].hidden) if "c" in (page.context or {}) else {}
        response = anna.post(address, hidden, follow=True)
        assert response.status_code == 200
        assert "Nothing was started:" in response.content.decode()
    assert list(SchedulerExecution.objects.values_list("state", flat=True)) == ["failed"]


def test_the_page_confirms_and_writes_an_audit_entry(anna: Client) -> None:
    copied()
    text = anna.get(reverse(PAGE)).content.decode()
    assert "Confirm: work with this database" in text
    response = anna.post(reverse(PAGE), {"waiting": "nonsense"})
    assert guard.look() is not None
    assert response.status_code == 200
    response = anna.post(reverse(PAGE), {"waiting": "set-aside"}, follow=True)
    assert "The database is confirmed." in response.content.decode()
    assert SAID not in response.content.decode()
    assert guard.look() is None
    assert "production" in LogEntry.objects.get().change_message
    assert anna.post(reverse(PAGE), {"waiting": "run"}).status_code == 200  # a second click
    assert LogEntry.objects.count() == 1


def test_a_viewer_sees_the_page_and_cannot_confirm(db: None) -> None:
    viewer = logged_in(UserFactory(permissions=["scheduling.view_deployment"]))
    copied()
    page = viewer.get(reverse(PAGE))
    assert "You lack the permission to confirm" in page.content.decode()
    assert viewer.post(reverse(PAGE), {"waiting": "run"}).status_code == 403
    assert guard.look() is not None
    assert logged_in(UserFactory()).get(reverse(PAGE)).status_code == 403


def test_a_message_that_waits_is_shown_once_beside_the_notice(anna: Client) -> None:
    row = SchedulerFactory()
    anna.get(reverse("admin:scheduling_scheduler_change", args=[10**9]))  # stores a message
    copied()
    first = anna.get(reverse("admin:scheduling_scheduler_changelist")).content.decode()
    assert SAID in first
    assert "It may be deleted." in first
    second = anna.get(reverse("admin:scheduling_scheduler_change", args=[row.pk])).content.decode()
    assert SAID in second
    assert "It may be deleted." not in second
