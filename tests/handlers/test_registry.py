"""Promise 7 of README.md: a consumer runs only registered code, whatever the database contains."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from datetime import date
from typing import Any

import pytest
from pydantic import BaseModel, Field, SecretStr

from scheduling.handlers import Limit, RegistryError, UnknownHandler, find, handlers, registry, worker
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


def test_a_decorator_without_its_name_is_refused_at_import() -> None:
    with pytest.raises(RegistryError, match=r'^@worker needs a name: write @worker\("sync"\) above sync\.$'):

        @worker  # type: ignore[arg-type]
        def sync(params: object, run: object) -> None:
            """Has no parentheses."""

    with pytest.raises(RegistryError, match=r"^@worker needs a name: it is a text, not 5\.$"):
        worker(5)  # type: ignore[call-overload]


@pytest.mark.parametrize("name", ["", "x" * 101])
def test_names_that_cannot_be_stored_are_refused(name: str) -> None:
    with pytest.raises(RegistryError, match="1 to 100"):
        worker(name)(lambda params, run: None)


def test_a_function_that_cannot_be_called_is_refused_at_import() -> None:
    with pytest.raises(RegistryError, match="two arguments"):
        worker("tests.none")(lambda: None)


def test_what_is_no_function_cannot_be_asked_whether_there_is_anything_to_do() -> None:
    with pytest.raises(RegistryError, match=r"Worker 'tests\.when_five': when is a function, not 5"):
        worker("tests.when_five", when=5)(lambda params, run: None)  # type: ignore[call-overload]


def test_a_function_with_yield_is_refused_at_import() -> None:
    async def streams(params: object, run: object) -> AsyncIterator[int]:
        yield 1

    def generates(params: object, run: object) -> Iterator[int]:
        yield 1

    for function in (streams, generates):
        with pytest.raises(RegistryError, match="contains `yield`"):
            worker("tests.yields")(function)


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


@pytest.mark.django_db
def test_each_name_of_a_function_is_run_under_its_own_name() -> None:
    def function(params: Params, run: object) -> int:
        """Returns its days."""
        return params.days

    async def later(params: object, run: object) -> str:
        return "later"

    class Shop:
        def sell(self, params: object, run: object) -> str:
            return "sold"

    both = [worker(name, params=Params)(function) for name in ("tests.first", "tests.second")]
    stacked = worker("tests.outer", params=Params)(worker("tests.inner", params=Params)(function))
    made = [each.run(days=7) for each in (*both, stacked, both[0])]
    names = ["tests.first", "tests.second", "tests.outer", "tests.first"]
    assert [SchedulerExecution.objects.get(pk=one.id).target_name for one in made] == names
    assert [each(Params(days=3), None) for each in (*both, stacked)] == [3, 3, 3]
    assert {find("worker", name).description for name in (*names, "tests.inner")} == {"Returns its days."}

    coroutines = [worker(name)(later) for name in ("tests.later", "tests.much_later")]
    assert [asyncio.run(each(None, None)) for each in coroutines] == ["later", "later"]
    sell = worker("tests.sell")(Shop().sell)
    assert SchedulerExecution.objects.get(pk=sell.run().id).target_name == "tests.sell"
    assert sell(None, None) == find("worker", "tests.sell").call(None, None) == "sold"


class SecretKeyParams(BaseModel):
    token: SecretStr = SecretStr("")
    region: str = "eu"


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"limit": 3}, "limit is a Limit, not 3."),
        ({"limit": Limit(1, key="country")}, "limit: the params have no field 'country'."),
        ({"limit": Limit(1, key="token")}, "limit: the param 'token' may hold a secret"),
        ({"breaker": 0.5}, "breaker is a CircuitBreaker, not 0.5."),
    ],
)
def test_a_limit_or_a_breaker_that_cannot_be_used_is_refused(options: dict[str, Any], problem: str) -> None:
    with pytest.raises(RegistryError, match=problem):
        worker("tests.guarded", params=SecretKeyParams, **options)(lambda params, run: None)
    worker("tests.guarded", params=SecretKeyParams, limit=Limit(1, key="region"))(lambda params, run: None)
