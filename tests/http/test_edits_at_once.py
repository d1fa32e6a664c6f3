"""Of two edits at once that name the same version, one wins, and the other one learns both versions."""

from __future__ import annotations

import os
from typing import Any

import pytest

from scheduling.models import Scheduler
from scheduling.operations.tokens import make_token
from tests.factories import SchedulerFactory, UserFactory, WorkerFactory
from tests.http.client import ApiClient
from tests.support import at_once

PAIRS = int(os.environ.get("TEST_EDIT_PAIRS", "10"))


@pytest.mark.django_db(transaction=True)
def test_of_two_edits_at_once_one_wins(settings: Any) -> None:
    settings.CRON_API_PER_MINUTE = 1_000_000
    row, user = SchedulerFactory(), UserFactory(superuser=True)
    _token, secret = make_token(user, "edits")
    for pair in range(PAIRS):
        version = ApiClient(None, secret).get(f"schedulers/{row.pk}").headers["ETag"]

        def edit(words: str, version: str = version) -> Any:
            answer = ApiClient(None, secret).send(
                "PATCH", f"schedulers/{row.pk}", {"description": words}, If_Match=version
            )
            return answer.status_code, words, answer

        won, lost = sorted(at_once([lambda words=f"{pair} {who}": edit(words) for who in "ab"]), key=lambda one: one[0])
        assert (won[0], lost[0]) == (200, 412)
        stored = Scheduler.objects.get(pk=row.pk)
        assert stored.description == won[1]
        told = lost[2].json()
        assert (told["if_match"], told["etag"]) == (version, won[2].headers["ETag"])
        assert told["current"]["description"] == won[1]
        assert lost[2].headers["ETag"] == told["etag"]


@pytest.mark.django_db
def test_a_delete_and_an_edit_without_if_match_name_no_version() -> None:
    client, row = ApiClient(UserFactory(superuser=True)), SchedulerFactory()
    old = client.get(f"schedulers/{row.pk}").headers["ETag"]
    assert client.send("PATCH", f"schedulers/{row.pk}", {"description": "new"}).status_code == 200
    assert client.send("DELETE", f"schedulers/{row.pk}", If_Match=old).status_code == 412
    assert client.send("PATCH", f"schedulers/{row.pk}", {"description": "newer"}, If_Match="*").status_code == 200
    for garbage in ("", "abc", '"', '"a", "b"', "W/"):
        refused = client.send("PATCH", f"schedulers/{row.pk}", {"description": "x"}, If_Match=garbage)
        assert (refused.status_code, refused.json()["code"]) == (400, "IF_MATCH_INVALID")
    new = client.get(f"schedulers/{row.pk}").headers["ETag"]
    assert client.send("DELETE", f"schedulers/{row.pk}", If_Match=new).status_code == 204
    assert client.send("DELETE", f"schedulers/{row.pk}", If_Match=new).status_code == 404


@pytest.mark.django_db
def test_each_value_that_a_client_may_give_changes_the_version() -> None:
    client = ApiClient(UserFactory(superuser=True))
    row, other, worker = SchedulerFactory(), SchedulerFactory(user=UserFactory()), WorkerFactory(name="tests.greet")
    values = {
        "name": "a/name", "description": "x", "worker": worker.name, "params": {"name": "bo"}, "schedule": "1 2 * * *",
        "timezone": "Europe/Madrid", "status": False, "pause_reason": "why", "overlap": "skip", "queue": "mail",
        "after": f"schedule-{other.pk}", "after_span": "previous", "after_within_seconds": 60, "after_late": "run",
        "priority": "low", "time_limit": 5, "language": "en", "max_retries": 2, "retry_delay_ms": 2_000,
        "retry_multiplier": 1.5, "retry_max_delay_ms": 90_000, "retry_jitter": False, "keep_success_days": 3,
        "keep_failed_days": 3, "keep_output_days": 3, "keep_count": 3, "start_within_seconds": 60, "max_runs": 3,
        "pause_after_failures": 3, "user": other.user.username,
        "spread_seconds": 600, "spread_each": True, "missed_runs": "all", "missed_cap": 7,
        "missed_within_seconds": 60, "active_from": "2026-01-01T00:00:00Z", "active_until": "2999-01-01T00:00:00Z",
        "on_excluded": "hold",
    }  # fmt: skip
    for name, value in values.items():
        before = client.get(f"schedulers/{row.pk}").headers["ETag"]
        answer = client.send("PATCH", f"schedulers/{row.pk}", {name: value})
        assert answer.status_code == 200, (name, answer.content)
        assert (answer.headers["ETag"] == before) is False, name
        if name not in ("worker", "user"):
            assert answer.json()[name] == value, name
