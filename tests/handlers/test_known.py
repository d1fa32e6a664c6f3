"""Processes record the handlers that they know, one set for each version of the code."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone as clock
from pydantic import BaseModel, ConfigDict, Field, field_validator

from scheduling.handlers.contract import contract, model_contract
from scheduling.handlers.known import record_handlers
from scheduling.handlers.listeners import all_listeners
from scheduling.handlers.registry import Handler, NoParams, _handlers, handlers, worker
from scheduling.models import HandlerSet, KnownHandler
from tests.support import at_once


def contract_of(params: type[BaseModel]) -> str:
    return contract(Handler("worker", "x", print, params))


def model(most: int = 5, forbidden: str = "") -> type[BaseModel]:
    class Params(BaseModel):
        number: int = Field(1, le=most)
        text: str = ""

    class Checked(BaseModel):
        number: int = Field(1, le=most)
        text: str = ""

        if forbidden == "a":

            @field_validator("text")
            @classmethod
            def check(cls, value: str) -> str:
                return value.removeprefix("a")

        else:

            @field_validator("text")
            @classmethod
            def check(cls, value: str) -> str:
                return value.removeprefix("b")

    return Checked if forbidden else Params


def test_a_contract_is_that_of_the_fields_and_the_validators() -> None:
    assert contract_of(model()) == contract_of(model())
    different = [model(), model(most=6), model(forbidden="a"), model(forbidden="b"), NoParams]
    assert len({contract_of(one) for one in different}) == len(different)


def test_a_field_without_a_json_schema_has_a_contract() -> None:
    class Odd(BaseModel):
        model_config = ConfigDict(arbitrary_types_allowed=True)
        thing: memoryview

    assert len(contract_of(Odd)) == 32


@pytest.mark.django_db
def test_a_version_is_recorded_once() -> None:
    first = record_handlers(clock.now())
    with CaptureQueriesContext(connection) as captured:
        assert record_handlers(clock.now()) == first
    assert len(captured) == 1
    known = KnownHandler.objects.filter(handler_set=first).order_by("type", "name")
    listeners = [("topic", f"{each.topic} {each.name}", model_contract(each.params)) for each in all_listeners()]
    wanted = [*((each.type, each.name, contract(each)) for each in handlers()), *listeners]
    assert listeners
    assert sorted(known.values_list("type", "name", "contract")) == sorted(wanted)
    worker("tests.another_version")(lambda params, run: None)
    try:
        second = record_handlers(clock.now())
    finally:
        del _handlers["worker", "tests.another_version"]
    assert second != first
    assert KnownHandler.objects.filter(handler_set=second).count() == known.count() + 1


@pytest.mark.django_db(transaction=True)
def test_processes_that_start_at_once_share_one_set() -> None:
    for _ in range(5):
        found = at_once([lambda: record_handlers(clock.now()) for _ in range(6)])
        assert len(set(found)) == 1
        assert found[0] is not None
        assert HandlerSet.objects.count() == 1
        assert KnownHandler.objects.count() == len(list(handlers())) + len(list(all_listeners()))
        KnownHandler.objects.all().delete()
        HandlerSet.objects.all().delete()


@pytest.mark.django_db
def test_a_thousand_handlers_are_recorded_once() -> None:
    names = [f"tests.many{number}" for number in range(1000)]
    for name in names:
        worker(name)(lambda params, run: None)
    try:
        assert KnownHandler.objects.filter(handler_set=record_handlers(clock.now())).count() >= 1000
    finally:
        for name in names:
            del _handlers["worker", name]


@pytest.mark.django_db
def test_handlers_that_cannot_be_recorded_do_not_stop_the_process(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("scheduling.handlers.known.contract", lambda handler: 1 / 0)
    assert record_handlers(clock.now()) is None
    assert "The handlers of this process cannot be recorded" in caplog.text
