"""A param that the handler does not know is refused before it is stored, and left out of a run that has it."""

from __future__ import annotations

from typing import Any

import pytest
from django.core.exceptions import ValidationError
from pydantic import AliasChoices, AliasPath, BaseModel, ConfigDict, Field, RootModel, model_validator

from scheduling import api
from scheduling.broker import get_broker
from scheduling.checks import check_schedules
from scheduling.execution.run_now import run_now
from scheduling.handlers import Run, registry, worker
from scheduling.handlers.params import ParamsInvalid
from scheduling.handlers.params_model import instance, unknown_params
from scheduling.models import Output, Scheduler, SchedulerExecution
from scheduling.operations.actor import Actor
from scheduling.operations.executions import rerun
from scheduling.operations.refused import Refused
from scheduling.operations.schedule_state import run as run_schedule
from scheduling.testing import drain, run_inline
from tests.factories import SchedulerFactory, UserFactory


class Sync(BaseModel):
    region: str = "eu"
    days: int = 1


class Renamed(BaseModel):
    region: str = "eu"

    @model_validator(mode="before")
    @classmethod
    def former_name(cls, data: Any) -> Any:
        return {"region": data["area"]} if "area" in data else data


class Aliased(BaseModel):
    region: str = Field("eu", validation_alias=AliasChoices("where", AliasPath("place", "region")))


class Anything(BaseModel, extra="allow"):
    region: str = "eu"


class Forbidding(Sync):
    model_config = ConfigDict(extra="forbid")


class Names(RootModel[dict[str, int]]):
    pass


@pytest.mark.parametrize(
    ("model", "params", "unknown"),
    [
        (Sync, {"region": "us", "days": 2}, []),
        (Sync, {"regoin": "us", "x": 1, "days": 2}, ["regoin", "x"]),
        (Forbidding, {"regoin": "us"}, ["regoin"]),
        (Renamed, {"area": "us"}, []),
        (Renamed, {"erea": "us"}, ["erea"]),
        (Aliased, {"where": "us"}, []),
        (Aliased, {"place": {"region": "us"}}, []),
        (Aliased, {"were": "us"}, ["were"]),
        (Anything, {"x": 1}, []),
        (Names, {"x": 1}, []),
    ],
)
def test_which_params_a_model_does_not_know(model: type[BaseModel], params: dict[str, Any], unknown: list[str]) -> None:
    assert sorted(unknown_params(model, params)) == sorted(unknown)
    if unknown:
        with pytest.raises(ParamsInvalid, match="there is no such parameter"):
            instance(model, params)
    assert type(instance(model, {}, params)) is model  # inherited ones are left out


def test_all_errors_are_told_and_a_close_name_is_proposed() -> None:
    with pytest.raises(ParamsInvalid) as caught:
        instance(Sync, {"regoin": "us", "days": "many", "zzz": 1})
    assert caught.value.errors == {
        "regoin": "there is no such parameter; did you mean region?",
        "days": "must be a whole number",
        "zzz": "there is no such parameter",
    }


@pytest.fixture
def sync(monkeypatch: pytest.MonkeyPatch) -> list[BaseModel]:
    """Register the worker `tests.sync_region`, and collect the params of its runs."""
    monkeypatch.setattr(registry, "_handlers", dict(registry._handlers))
    seen: list[BaseModel] = []

    @worker("tests.sync_region", params=Forbidding)
    def sync_region(params: Forbidding, run: Run) -> None:
        seen.append(params)

    return seen


@pytest.mark.django_db
def test_unknown_params_are_refused_by_code_and_at_save(sync: list[BaseModel]) -> None:
    with pytest.raises(ParamsInvalid, match="did you mean region"):
        api.run("tests.sync_region", {"regoin": "us"})
    with pytest.raises(ValidationError, match="did you mean region"):
        SchedulerFactory(handler="tests.sync_region", params={"regoin": "us"})
    assert not SchedulerExecution.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_a_deploy_that_drops_a_param_fails_no_run(sync: list[BaseModel]) -> None:
    """The schedule and the worker's row still have params that the new code does not know."""
    row = SchedulerFactory(handler="tests.sync_region", params={"region": "us"})
    type(row.worker).objects.filter(pk=row.worker_id).update(params={"old_default": 1})
    Scheduler.objects.filter(pk=row.pk).update(params={"region": "us", "dropped": 1})
    row.refresh_from_db()
    assert [message.id for message in check_schedules(["default"])] == ["scheduling.W002"]
    assert "does not know: dropped" in check_schedules(["default"])[0].msg
    actor = Actor(UserFactory(is_superuser=True))
    first = run_schedule(actor, row.pk)
    drain()
    rerun(actor, first.pk)
    api.run("tests.sync_region", {"days": 3})  # the default of the worker's row is no reason to refuse it
    drain()
    assert [params.model_dump() for params in sync] == [
        {"region": "us", "days": 1},
        {"region": "us", "days": 1},
        {"region": "eu", "days": 3},
    ]
    text = Output.objects.get(execution=first.pk).text
    assert "WARN Parameters that the handler does not know are left out: old_default, dropped" in text
    with pytest.raises(Refused, match="no such parameter"):
        run_schedule(actor, row.pk, {"region": "us", "dropped": 1})  # a change of the params is checked
    assert run_now(row, get_broker("database://")).pk


def test_in_a_test_of_the_project_the_run_goes_on_too(sync: list[BaseModel]) -> None:
    assert run_inline("tests.sync_region", {"region": "us", "dropped": 1}).outcome == "succeeded"
    assert sync[0] == Forbidding(region="us")


def test_the_name_of_a_field_with_an_alias_is_unknown() -> None:
    class ByAlias(BaseModel):
        count: int = Field(1, alias="n")

    class ByBoth(ByAlias):
        model_config = ConfigDict(populate_by_name=True)

    assert (unknown_params(ByAlias, {"n": 5}), unknown_params(ByAlias, {"count": 5})) == ([], ["count"])
    assert (unknown_params(ByBoth, {"n": 5}), unknown_params(ByBoth, {"count": 5})) == ([], [])


def test_a_model_that_refuses_subclasses() -> None:
    class Base(BaseModel):
        def __init_subclass__(cls, *, kind: str, **options: Any) -> None:
            super().__init_subclass__(**options)

    class Own(Base, kind="own"):
        count: int = 1

    assert unknown_params(Own, {"count": 5, "cuont": 6}) == ["cuont"]
