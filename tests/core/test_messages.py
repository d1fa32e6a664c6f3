"""`decode` turns any bytes into a message or raises an error. The error contains the bytes and a reason."""

from __future__ import annotations

import json
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduling.core.lifecycle import Trigger
from scheduling.core.messages import DecodeError, FailedMessage, TaskMessage, decode, encode

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=6,
)
STORABLE = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=10)
FIELDS = ["type", "id", "scheduler_id", "params_scheduler", "execution_id", "attempt", "scheduled_at", "version"]


def test_four_original_fields_are_enough() -> None:
    body = b'{"type": "report", "id": 25, "scheduler_id": 16, "params_scheduler": "{\\"a\\": 1}"}'
    assert decode(body) == TaskMessage(type="report", id=25, scheduler_id=16, params={"a": 1})


@given(
    st.builds(
        TaskMessage,
        type=st.sampled_from(["report", "worker", "reminder"]),
        id=st.integers(1, 2**40),
        scheduler_id=st.none() | st.integers(1, 2**40),
        params=st.dictionaries(STORABLE, st.integers(-(2**63), 2**63 - 1) | STORABLE, max_size=4),
        execution_id=st.none() | st.integers(1, 2**40),
        attempt=st.integers(1, 100),
        execution_key=STORABLE,
        headers=st.dictionaries(STORABLE.filter(bool), STORABLE, max_size=4),
        scheduled_at=st.none() | st.just(datetime(2025, 12, 12, 8, 0, tzinfo=UTC)),
        trigger=st.sampled_from([trigger.value for trigger in Trigger]),
    )
)
def test_round_trip(message: TaskMessage) -> None:
    assert decode(encode(message)) == message


@given(st.binary(max_size=200) | st.dictionaries(st.sampled_from(FIELDS), JSON).map(lambda d: json.dumps(d).encode()))
def test_an_error_contains_the_bytes_and_a_reason(body: bytes) -> None:
    try:
        assert isinstance(decode(body), TaskMessage)
    except DecodeError as error:
        assert error.body == body  # noqa: PT017
        assert str(error)  # noqa: PT017


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"type": "shell"}, "'type' must be one of"),
        ({"id": "25"}, "'id' must be a whole number"),
        ({"id": True}, "'id' must be a whole number"),
        ({"id": 0}, "'id' must be a whole number"),
        ({"version": 99}, "Update it"),
        ({"params_scheduler": "[1]"}, "JSON object"),
        ({"params_scheduler": "{"}, "not JSON"),
        ({"scheduled_at": "2025-12-12T08:00:00"}, "offset"),
        ({"scheduled_at": 5}, "ISO date"),
        ({"execution_key": "x" * 65}, "64 characters"),
    ],
)
def test_error_messages_name_the_field(change: dict[str, Any], words: str) -> None:
    body = json.dumps({"type": "worker", "id": 1, **change}).encode()
    with pytest.raises(DecodeError, match=words):
        decode(body)


def test_a_deep_or_huge_body_is_refused() -> None:
    with pytest.raises(DecodeError, match="not JSON"):
        decode(b"[" * 100_000)
    with pytest.raises(DecodeError, match="at most"):
        decode(b" " * 1_000_001)


@pytest.mark.parametrize(
    "change",
    [
        {"scheduled_at": "0001-01-01T00:00:00+14:00"},
        {"scheduled_at": "9999-12-31T23:59:59-14:00"},
        {"scheduled_at": "0900-01-01T00:00:00+00:00"},
        {"params_scheduler": '{"x":' + "[" * 31 + "]" * 31 + "}"},
        {"params_scheduler": '{"x":' + "[" * 970 + "]" * 970 + "}"},
        {"params_scheduler": '{"x":NaN}'},
        {"params_scheduler": '{"x":1e999}'},
        {"params_scheduler": '{"x":9223372036854775808}'},
        {"params_scheduler": '{"x":"\\u0000"}'},
        {"params_scheduler": '{"x":"\\ud800"}'},
        {"params_scheduler": {"x": [[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]}},
        {"attempt": 2**31},
        {"attempt": -1},
        {"execution_id": 2**63},
        {"execution_id": 1, "execution_key": "\x00"},
        {"retry_count": 2**40},
    ],
)
def test_values_that_a_database_may_refuse_are_refused(change: dict[str, Any]) -> None:
    with pytest.raises(DecodeError):
        decode(json.dumps({"type": "worker", "id": 1, **change}).encode())


def test_params_in_our_own_message_are_ignored() -> None:
    body = json.dumps({"type": "worker", "id": 1, "execution_id": 5, "params_scheduler": '{"x":NaN}'}).encode()
    assert decode(body).params == {}


@given(st.binary(max_size=200) | JSON.map(lambda value: json.dumps(value).encode(errors="replace")))
def test_any_body_is_decoded_or_refused(body: bytes) -> None:
    with suppress(DecodeError):
        assert isinstance(decode(body), TaskMessage)


def test_failed_message_has_the_fields_of_the_original_contract() -> None:
    at = datetime(2025, 12, 12, 12, 3, 39, 2000, tzinfo=UTC)
    task = TaskMessage(type="report", id=25, scheduler_id=16)
    payload = json.loads(encode(FailedMessage(task, at, "Connection timeout", 3)))
    assert payload["failed_at"] == "2025-12-12T12:03:39.002Z"
    assert (payload["failed_reason"], payload["retry_count"]) == ("Connection timeout", 3)
    assert payload["params_scheduler"] == "{}"
