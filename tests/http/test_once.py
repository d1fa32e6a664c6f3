"""Idempotency-Key: the same request with the same key is carried out once."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone as clock

from scheduling.broker import BrokerUnavailable
from scheduling.http import once
from scheduling.models import AnsweredRequest, Replay, Scheduler, SchedulerExecution
from scheduling.operations.tokens import make_token
from tests.factories import FailedExecutionFactory, SchedulerFactory, UserFactory
from tests.http.client import ApiClient
from tests.support import at_once

DAILY = "0 8 * * *"


@pytest.fixture
def client(db: None) -> ApiClient:
    return ApiClient(UserFactory(superuser=True))


def test_a_repeated_request_gets_the_first_answer_and_does_nothing(client: ApiClient) -> None:
    body = {"schedule": DAILY, "worker": SchedulerFactory().worker.name}
    first, second = (client.post("schedulers", body, Idempotency_Key="a") for _ in range(2))
    assert (first.status_code, first.content) == (second.status_code, second.content)
    assert first.headers["Location"] == second.headers["Location"]
    assert first.headers["ETag"] == second.headers["ETag"]
    assert second.headers["Idempotency-Replayed"] == "true"
    assert "Idempotency-Replayed" not in first.headers
    assert Scheduler.objects.count() == 2


def test_a_key_belongs_to_one_request_and_to_one_caller(client: ApiClient) -> None:
    first, other = SchedulerFactory.create_batch(2)
    assert client.post(f"schedulers/{first.pk}/run", Idempotency_Key="a").status_code == 202
    again = client.post(f"schedulers/{other.pk}/run", Idempotency_Key="a")
    assert again.json()["code"] == "IDEMPOTENCY_KEY_REUSED"
    changed = client.post(f"schedulers/{first.pk}/run", {"params": {"x": 1}}, Idempotency_Key="a")
    assert (changed.status_code, changed.json()["code"]) == (422, "IDEMPOTENCY_KEY_REUSED")
    # Keys that a database might take for the same.
    for key in ("A", "á".encode().decode("latin-1"), "a%20"):
        code = client.post(f"schedulers/{first.pk}/run", Idempotency_Key=key).status_code
        assert code == (202 if key.isascii() else 400)
    stranger = ApiClient(UserFactory(superuser=True))
    assert stranger.post(f"schedulers/{first.pk}/run", Idempotency_Key="a").status_code == 202
    assert SchedulerExecution.objects.filter(scheduler=first).count() == 4


@pytest.mark.parametrize("key", ["", " ", "a b", "x" * 201, "\x7f"])
def test_a_key_that_is_none_is_refused(client: ApiClient, key: str) -> None:
    row = SchedulerFactory()
    answer = client.post(f"schedulers/{row.pk}/run", Idempotency_Key=key)
    assert (answer.status_code, answer.json()["code"]) == (400, "IDEMPOTENCY_KEY_INVALID")
    assert not SchedulerExecution.objects.exists()


def test_a_refused_request_leaves_its_key_free(client: ApiClient) -> None:
    body = {"schedule": "not cron", "worker": SchedulerFactory().worker.name}
    assert client.post("schedulers", body, Idempotency_Key="a").status_code == 422
    assert client.post("schedulers", {**body, "schedule": DAILY}, Idempotency_Key="a").status_code == 201


def test_a_key_is_forgotten_after_a_day(client: ApiClient) -> None:
    row = SchedulerFactory()
    ids = []
    for _ in range(2):
        ids.append(client.post(f"schedulers/{row.pk}/run", Idempotency_Key="a").json()["id"])
        AnsweredRequest.objects.update(created_at=clock.now() - once.KEPT - timedelta(seconds=1))
    assert ids[0] != ids[1]


def test_the_run_that_was_left_out_is_an_answer_too(client: ApiClient) -> None:
    row = SchedulerFactory(overlap="skip")
    assert client.post(f"schedulers/{row.pk}/run").status_code == 202
    answers = [client.post(f"schedulers/{row.pk}/run", Idempotency_Key="a") for _ in range(2)]
    assert [each.status_code for each in answers] == [409, 409]
    assert answers[0].content == answers[1].content
    assert answers[1].headers["Content-Type"] == "application/problem+json"
    skipped = SchedulerExecution.objects.get(state="skipped")
    assert answers[0].json()["execution"] == skipped.pk


def test_a_request_in_parts_that_died_is_carried_on_and_leaves_out_later_failures(client: ApiClient) -> None:
    early, late = FailedExecutionFactory.create_batch(2)
    body = {"ids": [early.pk, late.pk]}
    assert client.post("failed/republish", body, Idempotency_Key="a").json()["done"] == [early.pk, late.pk]
    # As if the process had died before its answer was stored, and the second run had failed once more.
    now = clock.now()
    AnsweredRequest.objects.update(status=None, created_at=now, taken_at=now)
    SchedulerExecution.objects.filter(pk=late.pk).update(state="failed", finished_at=now - timedelta(seconds=30))
    SchedulerExecution.objects.filter(pk=early.pk).update(state="failed", finished_at=now - timedelta(seconds=90))
    waiting = client.post("failed/republish", body, Idempotency_Key="a")
    assert (waiting.status_code, waiting.json()["code"]) == (409, "IDEMPOTENCY_IN_PROGRESS")
    old = now - once.DEAD_AFTER - timedelta(seconds=1)
    AnsweredRequest.objects.update(created_at=old, taken_at=old)
    assert client.post("failed/republish", body, Idempotency_Key="a").json()["done"] == [early.pk]
    assert client.post("failed/republish", body, Idempotency_Key="a").json()["done"] == [early.pk]
    late.refresh_from_db()
    assert late.state == "failed"


@pytest.mark.django_db(transaction=True)
def test_requests_at_once_with_one_key_are_carried_out_once() -> None:
    row, user = SchedulerFactory(), UserFactory(superuser=True)
    _token, secret = make_token(user, "at once")

    def post() -> Any:
        return ApiClient(None, secret).post(f"schedulers/{row.pk}/run", Idempotency_Key="a")

    answers = at_once([post] * 6)
    assert {answer.status_code for answer in answers} <= {202, 409}
    assert {answer.json()["code"] for answer in answers if answer.status_code == 409} <= {"IDEMPOTENCY_IN_PROGRESS"}
    assert len({answer.content for answer in answers if answer.status_code == 202}) == 1
    assert SchedulerExecution.objects.count() == 1


def die(monkeypatch: pytest.MonkeyPatch, where: str) -> None:
    """Let the next requests end like a process that is killed at a function of `once`, and then go on as before."""

    def killed(*_args: Any) -> None:
        raise SystemExit

    monkeypatch.setattr(once, where, killed)


def pass_time(seconds: float) -> None:
    """Move the requests into the past."""
    for row in AnsweredRequest.objects.all():
        row.created_at -= timedelta(seconds=seconds)
        row.taken_at = row.taken_at and row.taken_at - timedelta(seconds=seconds)
        row.save()


def test_a_request_that_dies_twice_leaves_out_what_has_failed_since_the_first_time(
    client: ApiClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = FailedExecutionFactory()
    body = {"ids": [row.pk]}
    with monkeypatch.context() as patch:
        die(patch, "_keep")
        for _ in range(2):
            with pytest.raises(SystemExit):
                client.post("failed/republish", body, Idempotency_Key="a")
            pass_time(61)
            failed_at = clock.now() - timedelta(seconds=31)  # between the first two requests
            SchedulerExecution.objects.filter(pk=row.pk).update(state="failed", finished_at=failed_at)
    assert client.post("failed/republish", body, Idempotency_Key="a").json()["done"] == []
    assert SchedulerExecution.objects.get(pk=row.pk).state == "failed"


def test_a_refusal_after_a_death_keeps_the_key(client: ApiClient, monkeypatch: pytest.MonkeyPatch) -> None:
    row = FailedExecutionFactory()
    body = {"ids": [row.pk]}
    with monkeypatch.context() as patch:
        die(patch, "_keep")
        with pytest.raises(SystemExit):
            client.post("failed/republish", body, Idempotency_Key="a")
    pass_time(61)

    def away(*_args: Any, **_options: Any) -> None:
        raise BrokerUnavailable("it is away")

    SchedulerExecution.objects.filter(pk=row.pk).update(state="failed", finished_at=clock.now() - timedelta(seconds=90))
    with monkeypatch.context() as patch:
        patch.setattr("scheduling.operations.failures.actions.republish", away)
        assert client.post("failed/republish", body, Idempotency_Key="a").json()["code"] == "BROKER_AWAY"
    # It ran and failed once more after the first request, so it is not the business of the third one.
    SchedulerExecution.objects.filter(pk=row.pk).update(finished_at=clock.now())
    assert client.post("failed/republish", body, Idempotency_Key="a").json()["done"] == []


def test_a_canary_that_died_before_its_first_run_is_sent_by_the_repeated_request(
    client: ApiClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = FailedExecutionFactory.create_batch(3)
    body = {"ids": [row.pk for row in rows], "canary": True}

    def killed(*_args: Any) -> None:
        raise SystemExit

    with monkeypatch.context() as patch:
        patch.setattr("scheduling.inbox.replay._send_canary", killed)
        for _ in range(2):
            with pytest.raises(SystemExit):
                client.post("failed/republish", body, Idempotency_Key="a")
            AnsweredRequest.objects.update(taken_at=None)
    assert client.post("failed/republish", body, Idempotency_Key="a").json()["done"] == [rows[0].pk]
    assert sorted(Replay.objects.values_list("state", flat=True)) == ["stopped", "stopped", "waiting"]


@pytest.mark.django_db
def test_a_stored_answer_needs_the_permission_still() -> None:
    user, row = UserFactory(permissions=["scheduling.view_scheduler", "scheduling.run_scheduler"]), SchedulerFactory()
    limited = ApiClient(user)
    assert limited.post(f"schedulers/{row.pk}/run", Idempotency_Key="a").status_code == 202
    user.user_permissions.clear()
    assert limited.post(f"schedulers/{row.pk}/run", Idempotency_Key="a").status_code == 403


@pytest.mark.django_db(transaction=True)
def test_with_atomic_requests_rows_are_committed_before_their_messages() -> None:
    connection.settings_dict["ATOMIC_REQUESTS"] = True
    try:
        client, row = ApiClient(UserFactory(superuser=True)), FailedExecutionFactory()
        seen: list[bool] = []
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(
                "scheduling.inbox.actions.publish_requeued", lambda *_args: seen.append(connection.in_atomic_block)
            )
            assert client.post("failed/republish", {"ids": [row.pk]}).status_code == 200
        assert seen == [False]
    finally:
        connection.settings_dict["ATOMIC_REQUESTS"] = False
