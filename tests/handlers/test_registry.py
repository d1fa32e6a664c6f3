"""Promise 7 of README.md: a consumer runs only registered code, whatever the database contains."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date

import pytest
from pydantic import BaseModel, Field, SecretStr

from scheduling.handlers import RegistryError, UnknownHandler, find, handlers, registry, worker
from scheduling.handlers.params import ParamsInvalid, merge, validate
from scheduling.handlers.targets import sync_targets
from scheduling.models import SchedulerExecution, Worker


@pytest.fixture(autouse=True)
def restore() -> Iterator[None]:
    before = dict(registry._handlers)
    yield
    registry._handlers.clear()
    registry._handlers.update(before)


class Params(BaseModel):
    """Typed params of a handler."""

    days: int = Field(1, ge=1, le=90)
    region: str = "eu"


@pytest.mark.parametrize("name", ["os.system", "subprocess.Popen", "tests.apps.sample.workers.noop", "__import__", ""])
def test_code_that_is_not_registered_is_not_found(name: str) -> None:
    with pytest.raises(UnknownHandler, match="registered"):
        find("worker", name)


def test_a_second_function_with_the_same_name_is_refused() -> None:
    @worker("tests.twice")
    def first(params: object, run: object) -> None:
        """One."""

    with pytest.raises(RegistryError, match="Two workers are registered"):

        @worker("tests.twice")
        def second(params: object, run: object) -> None:
            """Another."""


def test_the_same_function_may_be_registered_twice() -> None:
    def function(params: object, run: object) -> None:
        """The same."""

    worker("tests.again")(function)
    worker("tests.again")(function)
    assert find("worker", "tests.again").call is function


@pytest.mark.parametrize("name", ["", "x" * 101])
def test_names_that_cannot_be_stored_are_refused(name: str) -> None:
    with pytest.raises(RegistryError, match="1 to 100"):
        worker(name)(lambda params, run: None)


def test_a_function_that_cannot_be_called_is_refused_at_import() -> None:
    with pytest.raises(RegistryError, match="two arguments"):
        worker("tests.none")(lambda: None)


@pytest.mark.django_db
def test_rows_are_made_once_and_keep_the_changes_of_operators() -> None:
    Worker.objects.filter(name="tests.noop").update(title="Renamed", params={"a": 1})
    worker("tests.fresh_row")(lambda params, run: None)
    assert sync_targets() == 1
    assert sync_targets() == 0
    assert Worker.objects.filter(name="tests.fresh_row").exists()
    assert Worker.objects.get(name="tests.noop").title == "Renamed"
    assert {handler.name for handler in handlers("worker")} <= set(Worker.objects.values_list("name", flat=True))


def test_params_are_merged_and_errors_name_the_fields() -> None:
    handler = registry.Handler("worker", "x", lambda params, run: None, params=Params)
    params = validate(handler, merge({"days": 2}, {"region": "us"}, None, {"days": 3}))
    assert (params.days, params.region) == (3, "us")  # type: ignore[attr-defined]
    with pytest.raises(ParamsInvalid) as caught:
        validate(handler, {"days": 91, "region": 5})
    assert set(caught.value.errors) == {"days", "region"}


@pytest.mark.django_db
def test_a_registered_function_can_be_run() -> None:
    class Secret(BaseModel):
        day: date
        token: SecretStr = Field(alias="api-token")
        others: list[SecretStr] = []

    @worker("tests.runs_itself", params=Secret)
    def runs_itself(params: Secret, run: object) -> str:
        return params.token.get_secret_value()

    made = runs_itself.run(**{"day": date(2026, 2, 3), "api-token": "hunter2", "others": ["a", SecretStr("b")]})
    stored = SchedulerExecution.objects.get(pk=made.id).params
    assert stored == {"day": "2026-02-03", "api-token": "hunter2", "others": ["a", "b"]}
    params = validate(find("worker", "tests.runs_itself"), stored)
    assert runs_itself(params, None) == "hunter2"
    with pytest.raises(ParamsInvalid, match="day: must be given"):
        runs_itself.run(**{"api-token": "hunter2"})
