"""Who may use the API, when it answers at all, and how it refuses."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.test import Client

from scheduling.models import Scheduler
from tests.factories import PASSWORD, SchedulerFactory, UserFactory
from tests.http.client import ApiClient
from tests.support import at_once

pytestmark = pytest.mark.django_db


@pytest.fixture
def browser() -> Client:
    """Provide the browser of a staff user who has logged in. It checks CSRF tokens as a real server does."""
    user = UserFactory(superuser=True)
    client = Client(enforce_csrf_checks=True)
    assert client.login(username=user.username, password=PASSWORD)
    return client


def test_a_session_reads_and_needs_the_csrf_token_to_change(browser: Client) -> None:
    row = SchedulerFactory()
    assert browser.get(f"/cron/schedulers/{row.pk}").status_code == 200
    for method in (browser.post, browser.delete, browser.patch):
        path = f"/cron/schedulers/{row.pk}" + ("/pause" if method == browser.post else "")
        refused = method(path, "{}", content_type="application/json")
        assert (refused.status_code, refused.json()["code"]) == (403, "CSRF")
    token = browser.get("/cron/docs").cookies["csrftoken"].value
    done = browser.post(
        f"/cron/schedulers/{row.pk}/pause", "{}", content_type="application/json", headers={"X-CSRFToken": token}
    )
    assert done.status_code == 200
    assert not Scheduler.objects.get(pk=row.pk).status


def test_a_wrong_token_is_not_tried_as_a_session(browser: Client) -> None:
    assert browser.get("/cron/schedulers", headers={"Authorization": "Bearer cron_wrong"}).status_code == 401


@pytest.mark.parametrize("columns", [{"is_staff": False}, {"is_active": False}])
def test_users_whom_the_admin_refuses_are_refused(columns: dict[str, bool]) -> None:
    user = UserFactory(superuser=True)
    client, browser = ApiClient(user), Client()
    browser.force_login(user)
    assert (client.get("schedulers").status_code, browser.get("/cron/schedulers").status_code) == (200, 200)
    type(user).objects.filter(pk=user.pk).update(**columns)
    assert (client.get("schedulers").status_code, browser.get("/cron/schedulers").status_code) == (401, 401)


def test_without_the_setting_there_is_nothing(settings: Any) -> None:
    client = ApiClient(UserFactory(superuser=True))
    settings.CRON_API = False
    for path in ("schedulers", "openapi.json", "docs", "nothing"):
        assert client.get(path).status_code == 404


def test_too_many_requests_of_one_caller_are_refused_and_those_of_others_are_not(settings: Any) -> None:
    settings.CRON_API_PER_MINUTE = 3
    client, other = (ApiClient(UserFactory(superuser=True)) for _ in range(2))
    assert [client.get("handlers").status_code for _ in range(4)] == [200, 200, 200, 429]
    refused = client.get("handlers")
    assert refused.json()["code"] == "TOO_MANY_REQUESTS"
    assert 0 < int(refused.headers["Retry-After"]) <= 60
    assert other.get("handlers").status_code == 200


@pytest.mark.django_db(transaction=True)
def test_callers_at_once_are_counted_apart(settings: Any) -> None:
    settings.CRON_API_PER_MINUTE = 8
    clients = [ApiClient(UserFactory(superuser=True)) for _ in range(4)]

    def some(client: ApiClient) -> list[int]:
        return [ApiClient(None, client.secret).get("handlers").status_code for _ in range(9)]

    for found in at_once([lambda client=client: some(client) for client in clients]):
        assert found == [200] * 8 + [429]


def test_a_cache_that_is_away_refuses_no_request(settings: Any) -> None:
    settings.CACHES = {"default": {"BACKEND": "tests.http.client.AwayCache"}}
    assert ApiClient(UserFactory(superuser=True)).get("handlers").status_code == 200


def test_what_the_history_says_names_the_door() -> None:
    user, row = UserFactory(superuser=True), SchedulerFactory()
    ApiClient(user).post(f"schedulers/{row.pk}/run")
    assert LogEntry.objects.get().change_message.startswith("run now (token “token ")
    assert LogEntry.objects.get().user == user


def test_a_mistyped_parameter_is_refused() -> None:
    client = ApiClient(UserFactory(superuser=True))
    for path in ("executions?stat=failed", "failed?fingerprnt=a", "schedulers?limit=5&Limit=3", "handlers?q=a"):
        refused = client.get(path)
        assert (refused.status_code, refused.json()["code"]) == (422, "INVALID")
        assert [error["code"] for error in refused.json()["errors"]] == ["unknown"]
    assert client.get("executions?state=failed&limit=5&q=x").status_code == 200


def test_the_page_of_the_api_has_no_inline_script(browser: Client) -> None:
    page = browser.get("/cron/docs")
    assert "script-src 'self'" in page.headers["Content-Security-Policy"]
    text = page.content.decode()
    assert text.count("<script") == text.count("<script src=") + text.count('<script type="application/json"')
    assert "style=" not in text
    described = browser.get("/cron/openapi.json").json()
    assert described["openapi"].startswith("3.1")
    assert "/cron/schedulers/{scheduler_id}/run" in described["paths"]


def test_the_description_and_its_page_are_only_read(browser: Client) -> None:
    for path in ("openapi.json", "docs"):
        refused = browser.delete(f"/cron/{path}")
        assert (refused.status_code, refused.headers["Allow"]) == (405, "GET")
