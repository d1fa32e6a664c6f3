"""/healthz asks no database. /readyz says 503, and soon, whatever is wrong with the database."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest
from django.db import OperationalError, connection
from django.db.migrations.recorder import MigrationRecorder
from django.test import Client
from django.utils import timezone as clock

from scheduling.metrics import views
from scheduling.metrics.readiness import MOST_HANGING, Readiness, problem_of_database
from scheduling.models import Deployment
from tests.contract.proxy import Proxy
from tests.metrics.scrape import TOKEN

TRANSACTIONAL = pytest.mark.django_db(transaction=True)


@pytest.fixture
def probe(monkeypatch: pytest.MonkeyPatch) -> Readiness:
    """The readiness of the page, which repeats no answer of an earlier test."""
    found = Readiness(problem_of_database, fresh=0)
    monkeypatch.setattr(views, "readiness", found)
    return found


def readyz(**headers: str) -> tuple[int, str]:
    response = Client(raise_request_exception=False).get("/readyz", headers=headers)
    assert "no-store" in response["Cache-Control"]
    return response.status_code, response.content.decode().strip()


def test_healthz_answers_without_the_database() -> None:
    response = Client().get("/healthz")  # pytest refuses the database to this test
    assert (response.status_code, response.content) == (200, b"ok\n")
    assert "no-store" in response["Cache-Control"]


@TRANSACTIONAL
def test_readyz_tells_strangers_nothing_and_others_why(probe: Readiness, settings: Any) -> None:
    settings.CRON_METRICS_TOKEN = TOKEN
    assert readyz() == (200, "ready")
    Deployment.objects.update(held_at=clock.now(), held_reason="restored by ann")
    assert readyz() == (503, "not ready")
    assert readyz(Authorization=f"Bearer {TOKEN}") == (503, "not ready\nrestored by ann")
    Deployment.objects.update(held_at=None, held_reason="", name="elsewhere", fingerprints="other")
    assert readyz() == (503, "not ready")


@TRANSACTIONAL
def test_readyz_of_a_database_without_a_migration(probe: Readiness) -> None:
    rows = MigrationRecorder.Migration.objects.filter(app="scheduling")
    row = rows.latest("pk")
    rows.filter(pk=row.pk).delete()
    try:
        assert readyz() == (503, "not ready")
    finally:
        row.save(force_insert=True)
    assert readyz() == (200, "ready")


@TRANSACTIONAL
@pytest.mark.parametrize("how", ["away", "hangs"])
def test_readyz_of_a_server(how: str, probe: Readiness, proxied: Proxy) -> None:
    assert readyz() == (200, "ready")
    if how == "away":
        proxied.shut()
    else:
        proxied.freeze()
    assert readyz() == (503, "not ready")


@pytest.fixture
def proxied(monkeypatch: pytest.MonkeyPatch) -> Iterator[Proxy]:
    """Lead new connections to the database through a proxy that can freeze like a suspended server."""
    if connection.vendor == "sqlite":
        pytest.skip("SQLite has no server")
    config = connection.settings_dict
    default = 5432 if connection.vendor == "postgresql" else 3306
    proxy = Proxy(config["HOST"] or "127.0.0.1", int(config["PORT"] or default))
    monkeypatch.setitem(config, "HOST", "127.0.0.1")
    monkeypatch.setitem(config, "PORT", str(proxy.port))
    yield proxy
    proxy.close()


def test_any_error_is_an_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    def away() -> str:
        raise OperationalError("no route to password=hunter2")

    monkeypatch.setattr(views, "readiness", Readiness(away))
    assert readyz() == (503, "not ready")


def test_a_look_that_hangs_is_shared_and_then_abandoned() -> None:
    release, looks = threading.Event(), []

    def hang() -> str:
        looks.append(1)
        release.wait(60)
        return ""

    shared = Readiness(hang, seconds=0.01, fresh=60)
    assert all(shared.problem() for _ in range(3))
    assert len(looks) == 1
    abandoned = Readiness(hang, seconds=0.01, abandoned=0)
    assert all(abandoned.problem() for _ in range(MOST_HANGING + 3))
    assert len(looks) == 1 + MOST_HANGING
    release.set()
    patient = Readiness(hang, seconds=60)
    assert [patient.problem() for _ in range(3)] == [""] * 3
    assert len(looks) == 2 + MOST_HANGING, "a fresh answer is repeated"
