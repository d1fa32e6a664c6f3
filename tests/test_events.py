"""Events: planned from code, delivered to all listeners of their topic, cancelled, found by topic and metadata."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Group
from django.db import transaction
from django.utils import timezone as clock

from scheduling import api
from scheduling.core.retry import RetryPolicy
from scheduling.core.snooze import Snooze
from scheduling.handlers import RegistryError, Run, listener
from scheduling.handlers.listeners import Listener, _listeners, listeners_of
from scheduling.handlers.params import ParamsInvalid
from scheduling.handlers.run_config import RunConfigs
from scheduling.models import Event, KnownHandler, SchedulerExecution
from scheduling.models.execution import message_of
from scheduling.processes.identity import container_id
from scheduling.signals import event_without_listener
from scheduling.testing import run_inline, travel
from scheduling.workers.event import EventParams, _only_in_newer_code, event
from tests.apps.sample.listening import InvoiceParams
from tests.factories import EventFactory, HandlerSetFactory, ProcessFactory, SchedulerExecutionFactory

pytestmark = pytest.mark.django_db

LATER = datetime(2096, 7, 1, 9, 0, tzinfo=UTC)


def row_of(pk: int) -> SchedulerExecution:
    return SchedulerExecution.objects.get(pk=pk)


def deliver(topic: str, **payload: Any) -> Any:
    return run_inline("event", {"topic": topic, "payload": payload})


def names() -> list[str]:
    return sorted(Group.objects.values_list("name", flat=True))


def test_an_event_waits_for_its_time_with_topic_payload_and_metadata() -> None:
    made = api.schedule_at(
        "tests.invoice_due", LATER, payload={"invoice_id": 7}, metadata={"customer": 42},
        retry=RetryPolicy(max_retries=2, delay_ms=10_000, backoff="constant"),
    )  # fmt: skip
    row = row_of(made.id)
    assert (made.is_new, row.state, row.scheduled_at, row.wake_at) == (True, row.state, LATER, LATER)
    assert row.state in ("queued", "claimed")
    assert (row.type, row.target_name, row.params["payload"]) == ("worker", "event", {"invoice_id": 7})
    event = Event.objects.get(pk=made.id)
    assert (event.topic, event.metadata) == ("tests.invoice_due", {"customer": 42})
    assert list(Event.objects.filter(metadata__customer=42)) == [event]


@pytest.mark.parametrize(
    ("run_at", "timezone", "instant"),
    [
        (datetime(2096, 7, 1, 9, 0), "Europe/Berlin", datetime(2096, 7, 1, 7, 0, tzinfo=UTC)),
        (datetime(2096, 7, 1, 9, 0), "", None),
        (LATER, "Europe/Berlin", LATER),
    ],
)
def test_a_naive_time_is_a_local_time_of_the_zone(
    run_at: datetime, timezone: str, instant: datetime | None, settings: Any
) -> None:
    settings.TIME_ZONE = "Asia/Tokyo"
    made = api.schedule_at("tests.any", run_at, timezone=timezone)
    assert row_of(made.id).scheduled_at == (instant or datetime(2096, 7, 1, 0, 0, tzinfo=UTC))


def test_a_time_that_has_passed_means_now() -> None:
    made = api.schedule_at("tests.any", clock.now() - timedelta(days=400))
    assert abs(row_of(made.id).scheduled_at - clock.now()) < timedelta(minutes=1)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"topic": "x" * 101}, "A topic has at most 100 characters, not 101."),
        ({"topic": "x" * 1_000_000}, "A topic has at most 100 characters, not 1,000,000."),
        ({"topic": ""}, "A topic is a text of printable ASCII characters"),
        ({"topic": "a b"}, "without spaces"),
        ({"topic": "ä"}, "printable ASCII"),
        ({"topic": None}, "not None"),
        ({"timezone": "Europe/Atlantis"}, "is not an IANA time zone"),
        ({"run_at": datetime(9999, 1, 1, tzinfo=UTC)}, "after the year 9998"),
        ({"run_at": datetime(1, 1, 1), "timezone": "Asia/Tokyo"}, "years 1-9999"),
        ({"payload": {"x": object()}}, "not JSON"),
        ({"payload": {"x": "x" * 10_000_000}}, "The JSON of the parameters"),
        ({"payload": {"x": "\x00"}}, "The JSON of the parameters"),
        ({"metadata": {"x": float("nan")}}, "JSON"),
        ({"metadata": {str(n): n for n in range(51)}}, "at most 50"),
        ({"metadata": [1]}, "metadata is a mapping"),
        ({"retry": RetryPolicy(backoff=[0])}, "retry= cannot be used"),
        ({"key": "x" * 3_000}, "The key has 3,000 characters"),
    ],
)
def test_what_cannot_be_is_a_sentence_and_leaves_nothing(wrong: dict[str, Any], said: str) -> None:
    given = {"topic": "tests.any", "run_at": LATER} | wrong
    with pytest.raises(ValueError, match=said):
        api.schedule_at(given.pop("topic"), given.pop("run_at"), **given)
    assert not SchedulerExecution.objects.exists()
    assert not Event.objects.exists()


def test_a_payload_that_a_listener_refuses_is_refused_at_the_call() -> None:
    with pytest.raises(ParamsInvalid, match="listener remind"):
        api.schedule_at("tests.invoice_due", LATER, payload={"invoice_id": "none"})
    made = api.schedule_at("tests.invoice_due", LATER, payload=InvoiceParams(invoice_id=3))
    assert row_of(made.id).params["payload"] == {"invoice_id": 3}


def test_in_a_transaction_that_is_rolled_back_it_never_was() -> None:
    with transaction.atomic():
        api.schedule_at("tests.any", LATER)
        transaction.set_rollback(True)
    assert not SchedulerExecution.objects.exists()
    assert not Event.objects.exists()


def test_of_calls_with_one_key_the_first_one_makes_the_event() -> None:
    first = api.schedule_at("tests.any", LATER, key="invoice-7", metadata={"n": 1})
    second = api.schedule_at("tests.any", LATER, key="invoice-7", metadata={"n": 2})
    assert (second.id, second.is_new) == (first.id, False)
    assert Event.objects.get().metadata == {"n": 1}


def test_a_cancelled_event_is_not_delivered() -> None:
    made = api.schedule_at("tests.any", LATER)
    assert api.cancel_schedule(made.id, by="ann") is True
    assert (row_of(made.id).state, row_of(made.id).reason) == ("cancelled", "Cancelled by ann.")
    assert api.cancel_schedule(made.id) is False
    other = api.run("tests.noop")
    assert api.cancel_schedule(other.id) is False, "a run that is no event"
    assert row_of(other.id).state != "cancelled"


def test_a_listener_gets_its_params_and_the_metadata() -> None:
    given = {"topic": "tests.invoice_due", "payload": {"invoice_id": 5}, "metadata": {"customer": "x"}}
    found = run_inline("event", given)
    assert (found.outcome, found.result) == ("succeeded", {"listeners": 1})
    assert names() == ["remind 5 x 1"]


def test_each_listener_is_called_whatever_the_others_did_and_a_failure_names_them() -> None:
    found = deliver("tests.failing", word="a")
    assert found.outcome == "failed"
    assert found.error_class.endswith("ListenersFailed")
    assert found.error_message == "1 of 3 listeners failed: second (ValueError: no paper)"
    assert len(names()) == 2


def test_a_retry_calls_only_the_listeners_that_have_not_finished() -> None:
    with travel("2026-03-10T00:00:00Z") as simulated:
        made = api.schedule_at("tests.failing", clock.now(), payload={"word": "a", "until": 2})
        simulated.forward(hours=1, raise_errors=False)
    row = row_of(made.id)
    assert (row.state, row.attempt) == ("succeeded", 3)
    assert len(names()) == 2, "the first and the third one, once each"


@pytest.mark.parametrize(("how", "retryable", "after"), [("final", False, None), ("later", True, 7), ("", True, None)])
def test_the_error_of_the_listeners_decides_about_the_retry(how: str, retryable: bool, after: float | None) -> None:
    from scheduling.core.outcome import NonRetryableError, RetryableError
    from scheduling.workers.event import ListenersFailed, _raise_failures

    errors: dict[str, Exception] = {"final": NonRetryableError("x"), "later": RetryableError("x", retry_after=7)}
    error = errors.get(how, ValueError("x"))
    with pytest.raises(Exception, match="1 of 3 listeners failed") as raised:
        _raise_failures([(Listener("t", "second", lambda _params, _run: None), error)], 3)
    assert isinstance(raised.value, NonRetryableError) is not retryable
    assert isinstance(raised.value, ListenersFailed) is (how == "")
    assert getattr(raised.value, "retry_after", None) == after


def test_without_a_listener_it_succeeds_with_a_warning_and_a_signal(caplog: pytest.LogCaptureFixture) -> None:
    heard: list[dict[str, Any]] = []

    def hear(**facts: Any) -> None:
        heard.append(facts)

    event_without_listener.connect(hear)
    try:
        found = deliver("tests.without_listener")
    finally:
        event_without_listener.disconnect(hear)
    assert (found.outcome, found.result) == ("succeeded", {"listeners": 0})
    assert "No listener for the topic 'tests.without_listener'" in found.output
    assert [facts["topic"] for facts in heard] == ["tests.without_listener"]


def test_the_policy_of_an_event_is_its_own() -> None:
    own = RetryPolicy(max_retries=2, delay_ms=10_000, backoff="constant")
    made = [
        api.schedule_at("tests.any", LATER, retry=own),
        api.schedule_at("tests.any", LATER, retry=RetryPolicy(backoff=lambda n: n)),
        api.schedule_at("tests.any", LATER),
    ]
    configs = RunConfigs()
    first, second, third = (configs.get(message_of(row_of(each.id))).policy for each in made)
    assert (first.max_retries, [first.delay(n) for n in (1, 2)]) == (2, [10_000, 10_000])
    assert [second.delay(n) for n in (1, 2, 3)] == [1_000, 2_000, 3_000]
    assert third.max_retries == 3


@pytest.mark.parametrize("retry", [7, [], {"max_retries": 99}, {"backoff": {"a": 1}}, {"x": 1}, {"backoff": "odd"}])
def test_a_policy_that_plain_sql_has_written_is_ignored(retry: Any) -> None:
    made = api.schedule_at("tests.any", LATER)
    SchedulerExecution.objects.filter(pk=made.id).update(params={"topic": "tests.any", "retry": retry})
    assert RunConfigs().get(message_of(row_of(made.id))).policy.max_retries == 3


@pytest.fixture
def own_listeners(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("scheduling.handlers.listeners._listeners", dict(_listeners))


@pytest.mark.usefixtures("own_listeners")
def test_what_cannot_listen_is_refused_with_a_sentence() -> None:
    from pydantic import BaseModel, SecretStr

    class Hidden(BaseModel):
        token: SecretStr

    async def later(_payload: Any, _run: Any) -> None: ...

    def one(_payload: Any) -> None: ...

    def good(_payload: Any, _run: Any) -> None: ...

    for topic, options, function, said in (
        ("a b", {}, good, "without spaces"),
        ("t", {"params": 7}, good, "pydantic model class"),
        ("t", {"params": Hidden}, good, "have a secret"),
        ("t", {"name": "ä"}, good, "printable ASCII"),
        ("t", {}, later, "ordinary function"),
        ("t", {}, one, "two arguments"),
    ):
        with pytest.raises(RegistryError, match=said):
            listener(topic, **options)(function)  # type: ignore[arg-type]
    listener("t", name="x")(good)
    listener("t", name="x")(good)
    assert len(listeners_of("t")) == 1
    with pytest.raises(RegistryError, match="Two listeners of 't' are named 'X'"):
        listener("t", name="X")(lambda _payload, _run: None)


def consumer_beside(listener_names: list[str], minutes: int) -> None:
    """Record an alive consumer that started so many minutes after the one that runs the event."""
    known = HandlerSetFactory(known={})
    for name in listener_names:
        KnownHandler.objects.create(handler_set=known, type="topic", name=name, contract="")
    ProcessFactory(kind="consumer", handler_set=known, started_at=clock.now() + timedelta(minutes=minutes))


@pytest.mark.parametrize(
    ("known", "minutes", "missing"),
    [
        (["t one", "t two"], 5, {"two"}),
        (["t one", "t two"], -5, set()),
        (["t one"], 5, set()),
        (["t2 two", "other two"], 5, set()),
        ([], 5, set()),
    ],
)
def test_during_a_deploy_an_event_waits_for_the_newer_code(known: list[str], minutes: int, missing: set[str]) -> None:
    here = ProcessFactory(kind="consumer", started_at=clock.now())
    row = EventFactory(execution=SchedulerExecutionFactory(running=True, consumer=here.container_id)).execution
    consumer_beside(known, minutes)
    assert _only_in_newer_code("t", {"one"}, row.pk) == missing


def test_an_event_that_newer_code_knows_more_of_is_not_taken_for_delivered() -> None:
    here = ProcessFactory(kind="consumer", started_at=clock.now(), container_id=container_id())
    row = EventFactory(execution=SchedulerExecutionFactory(running=True, consumer=here.container_id)).execution
    consumer_beside(["tests.without_listener two"], 5)
    run = Run(row.pk, row.execution_key, 1, 0, is_last_attempt=False, scheduled_at=row.scheduled_at)
    with pytest.raises(Snooze, match="further listeners: two"):
        event(EventParams(topic="tests.without_listener"), run)
