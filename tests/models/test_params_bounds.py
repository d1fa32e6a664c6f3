"""Messages, forms and `save` refuse the same params: those that one of the databases would refuse."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from django.core.exceptions import ValidationError

from scheduling.admin.params.json_field import PrettyJSONField
from scheduling.core.json_bounds import MAX_CHARS, MAX_DEPTH
from scheduling.core.messages import DecodeError, decode
from scheduling.models import Scheduler, Worker
from tests.factories import SchedulerFactory, WorkerFactory

pytestmark = pytest.mark.django_db


def nested(levels: int) -> dict[str, Any]:
    """Return an object that contains `levels` - 1 objects, one inside the other."""
    value: dict[str, Any] = {}
    for _ in range(levels - 1):
        value = {"a": value}
    return value


GOOD: dict[str, dict[str, Any]] = {
    "empty": {},
    "nested": nested(MAX_DEPTH),
    "largest": {"a": 2**63 - 1},
    "smallest": {"a": -(2**63)},
    "float": {"a": [-0.1, 1.5e-7, 123456.75]},
    "text": {"a": "é😀\n\t\x01"},
    "long": {"a": "x" * (MAX_CHARS - 1_000)},
}
BAD: dict[str, dict[str, Any]] = {
    "nested": nested(MAX_DEPTH + 2),
    "nested list": {"a": json.loads("[" * 500 + "]" * 500)},
    "large": {"a": [2**63]},
    "small": {"a": -(2**63) - 1},
    "infinity": {"a": float("inf")},
    "NaN": {"a": [float("nan")]},
    "NUL": {"a": "x\x00"},
    "NUL in a name": {"\x00": 1},
    "half a character": {"a": "\ud800"},
    "long": {"a": "x" * MAX_CHARS},
}


def message(params: dict[str, Any]) -> None:
    decode(json.dumps({"type": "worker", "id": 1, "scheduler_id": 1, "params_scheduler": params}).encode())


def form(params: dict[str, Any]) -> None:
    assert PrettyJSONField().clean(json.dumps(params)) == params


def schedule(params: dict[str, Any]) -> None:
    row = SchedulerFactory(worker=WorkerFactory(name="tests.removed"))
    row.params = params
    row.save()
    assert Scheduler.objects.get(pk=row.pk).params == params


def target(params: dict[str, Any]) -> None:
    row = WorkerFactory()
    row.params = params
    row.save()
    assert Worker.objects.get(pk=row.pk).params == params


WAYS = [message, form, schedule, target]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", GOOD)
def test_storable_params_are_accepted(way: Callable[[dict[str, Any]], None], name: str) -> None:
    way(GOOD[name])


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", BAD)
def test_params_that_a_database_refuses_are_refused(way: Callable[[dict[str, Any]], None], name: str) -> None:
    with pytest.raises((DecodeError, ValidationError)):
        way(BAD[name])


@pytest.mark.parametrize("row", [Scheduler, Worker])
def test_a_form_shows_the_reason_at_the_parameters(row: Any) -> None:
    with pytest.raises(ValidationError) as caught:
        row(params=BAD["large"]).full_clean()
    assert caught.value.message_dict["params"] == ["The JSON holds a whole number beyond 64 bits."]
