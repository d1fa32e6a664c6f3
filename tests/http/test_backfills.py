"""Backfills through the HTTP API and `manage.py cron`."""

from __future__ import annotations

from typing import Any

import pytest

from scheduling.models import Backfill
from scheduling.operations.backfill_shapes import BackfillPlanShape, BackfillShape
from tests.execution.backfills import made, sweep_all
from tests.factories import BackfillFactory, GroupFactory, SchedulerFactory, UserFactory
from tests.http.client import ApiClient
from tests.management.cron.calls import cron

pytestmark = pytest.mark.django_db
RANGE = {"from": "2026-01-05", "until": "2026-01-07 12:00", "per_minute": 6000}


@pytest.fixture
def client() -> ApiClient:
    return ApiClient(UserFactory(username="boss", superuser=True))


def test_a_dry_run_lists_what_the_start_makes(client: ApiClient) -> None:
    row = SchedulerFactory(schedule="0 0 * * *", timezone="Europe/Madrid")
    address = f"schedulers/{row.pk}/backfill"
    shown = BackfillPlanShape.model_validate(client.post(address, {**RANGE, "dry_run": True}).json())
    assert (shown.total, shown.new, shown.ran, shown.made) == (3, 3, 0, 0)
    assert not Backfill.objects.exists()
    started = client.post(address, {**RANGE, "reason": "why"}, Idempotency_Key="one")
    found = BackfillShape.model_validate(started.json())
    assert (started.status_code, found.state, found.reason, found.total) == (202, "running", "why", 3)
    assert client.post(address, {**RANGE, "reason": "why"}, Idempotency_Key="one").json()["id"] == found.id
    assert Backfill.objects.count() == 1
    sweep_all()
    assert made(row) == [line.at for line in shown.instants]
    assert client.get(started.headers["Location"].removeprefix("/cron/")).json()["state"] == "done"
    again = client.post(address, RANGE).json()
    assert (again["state"], again["created"], again["existing"]) == ("done", 0, 3)
    assert [one["id"] for one in client.get("backfills").json()["items"]] == [again["id"], found.id]


def test_it_is_paused_resumed_and_cancelled(client: ApiClient) -> None:
    one = BackfillFactory()
    for verb, state in (("pause", "paused"), ("resume", "running"), ("cancel", "cancelled")):
        assert client.post(f"backfills/{one.pk}/{verb}").json()["state"] == state
        assert client.post(f"backfills/{one.pk}/{verb}").status_code == 409


@pytest.mark.parametrize(
    ("values", "field"),
    [
        ({"from": "never"}, "from"),
        ({"from": "2026-01-05T00:00:00+99:00"}, "from"),
        ({"until": "2025-01-01"}, "until"),
        ({"until": "9998-01-01"}, "until"),
        ({"per_minute": 0}, "per_minute"),
        ({"per_minute": "fast"}, "per_minute"),
        ({"reason": "x" * 501}, "reason"),
        ({"also": True}, "also"),
        ({"from": "2016-01-01"}, "until"),
    ],
)
def test_bad_values_are_named(client: ApiClient, values: dict[str, Any], field: str) -> None:
    row = SchedulerFactory(schedule="* * * * *")
    refused = client.post(f"schedulers/{row.pk}/backfill", {**RANGE, **values})
    assert refused.status_code == 422
    assert field in str(refused.json())
    assert not Backfill.objects.exists()


def test_groups_and_permissions_hold(client: ApiClient) -> None:
    one = BackfillFactory(group=GroupFactory())
    row = SchedulerFactory(group=one.group)
    limited = ApiClient(UserFactory(permissions=["scheduling.view_scheduler", "scheduling.backfill_scheduler"]))
    assert limited.get("backfills").json()["items"] == []
    assert limited.get(f"backfills/{one.pk}").status_code == 404
    assert limited.post(f"backfills/{one.pk}/cancel").status_code == 404
    assert limited.post(f"schedulers/{row.pk}/backfill", RANGE).status_code == 404
    reader = ApiClient(UserFactory(permissions=["scheduling.view_scheduler"]))
    own = SchedulerFactory()
    for body in (RANGE, {**RANGE, "dry_run": True}):
        assert reader.post(f"schedulers/{own.pk}/backfill", body).status_code == 403
    assert client.get(f"backfills/{one.pk}").status_code == 200


def test_the_command_lists_starts_and_cancels() -> None:
    UserFactory(username="boss", superuser=True)
    row = SchedulerFactory(name="nightly", schedule="0 0 * * *")
    wanted = ("--from", "2026-01-05", "--until", "2026-01-06")
    shown = cron("backfill", "nightly", *wanted, "--dry-run")
    assert shown.code == 0
    assert shown.out.splitlines() == [
        "2026-01-05 00:00 UTC  new",
        "2026-01-06 00:00 UTC  new",
        "2 to run, 0 have run, 0 were made by an earlier backfill. Nothing was done.",
    ]
    assert cron("backfill", "nightly", *wanted, "--dry-run", "--json").json["plan"]["new"] == 2
    assert not Backfill.objects.exists()
    started = cron("backfill", "nightly", *wanted, "--per-minute", 1, "--reason", "why", "--json").json["backfill"]
    assert (started["state"], started["reason"], started["per_minute"]) == ("running", "why", 1)
    assert f"{started['id']}  running  0 of 2, 0 made" in cron("backfills").out
    assert "cancelled" in cron("backfills", "--cancel", started["id"]).out
    assert cron("backfills", "--cancel", started["id"]).code == 4
    assert cron("backfill", "nightly", "--from", "x", "--until", "2026-01-06").code == 4
    cron("backfill", "nightly", *wanted)
    sweep_all()
    assert len(made(row)) == 2
