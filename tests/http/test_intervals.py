"""Intervals through the HTTP API."""

from __future__ import annotations

import pytest

from scheduling.models import Scheduler
from tests.factories import UserFactory, WorkerFactory
from tests.http.client import ApiClient

pytestmark = pytest.mark.django_db


def test_an_interval_is_made_told_and_refused() -> None:
    client, worker = ApiClient(UserFactory(superuser=True)), WorkerFactory(name="tests.noop")
    every = "@every 3d at 08:00 from 2026-01-05"
    made = client.post("schedulers", {"schedule": every, "worker_id": worker.pk, "timezone": "Europe/Madrid"})
    assert (made.status_code, made.json()["schedule"]) == (201, every)
    pk = made.json()["id"]
    told = client.get(f"schedulers/{pk}/next").json()
    assert told["words"] == "At 08:00, every third day, counted from 2026-01-05"
    assert len(told["runs"]) == 10
    for schedule, said in (
        ("@every 10s", "CRON_SECONDS"),
        ("@every 0m", "the shortest is"),
        ("@every 9y", "not known"),
    ):
        refused = client.send("PATCH", f"schedulers/{pk}", {"schedule": schedule}, If_Match="*")
        assert refused.status_code == 422
        (problem,) = refused.json()["errors"]
        assert problem["field"] == "schedule"
        assert said in problem["message"]
    assert Scheduler.objects.get(pk=pk).schedule == every
