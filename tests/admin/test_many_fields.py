"""A request with more query parameters than Django allows is refused, and is no error of the server."""

from __future__ import annotations

import pytest
from django.conf import settings
from django.test import Client, override_settings
from django.urls import reverse

from tests.factories import SchedulerFactory

pytestmark = pytest.mark.django_db

MANY = "?" + "&".join(f"x{number}=1" for number in range(settings.DATA_UPLOAD_MAX_NUMBER_FIELDS + 500))

NAMED = ["admin:scheduling_dashboard_changelist", "admin:scheduling_scheduler_changelist", "admin:index"]


def addresses() -> list[str]:
    row = SchedulerFactory()
    return [
        *map(reverse, NAMED),
        reverse("admin:scheduling_scheduler_change", args=[row.pk]),
        reverse("admin:scheduling_scheduler_change", args=[row.pk + 1]),
        reverse("admin:scheduling_scheduler_history", args=[row.pk]),
        reverse("admin:scheduling_scheduler_changes", args=[row.pk]),
        reverse("admin:scheduling_scheduler_preview", args=["runs"]),
        reverse("admin:scheduling_scheduler_preview", args=["changes"]),
        reverse("admin:index") + "no/such/page/",
        reverse("admin:login"),
        "/no-such-page/",
    ]


@pytest.mark.parametrize("debug", [False, True])
@pytest.mark.parametrize("who", ["editor", "visitor"])
def test_too_many_parameters_are_refused(editor: Client, who: str, debug: bool) -> None:
    client = editor if who == "editor" else Client()
    client.raise_request_exception = False
    with override_settings(DEBUG=debug):
        answers = {address: client.get(address + MANY) for address in addresses()}
    assert {answer.status_code for answer in answers.values()} == {400}
    assert {answer.content for answer in answers.values()} == {
        b"The address has too many parameters. Nothing was changed."
    }


@override_settings(MIDDLEWARE=[name for name in settings.MIDDLEWARE if "ManyParameters" not in name])
@pytest.mark.parametrize("who", ["editor", "visitor"])
def test_a_project_without_the_middleware_has_no_server_error_either(editor: Client, who: str) -> None:
    client = editor if who == "editor" else Client()
    client.raise_request_exception = False
    answers = {address: client.get(address + MANY).status_code for address in addresses()}
    assert not {address: status for address, status in answers.items() if status >= 500}
