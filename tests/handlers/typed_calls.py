"""Calls that mypy checks in `make lint`. An `ignore` that is not needed is an error there, so each one is a test."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from pydantic import BaseModel

from scheduling.api import Submitted
from scheduling.handlers import BatchRun, Run, worker


class TypedParams(BaseModel):
    """Params with a choice."""

    region: Literal["eu", "us"]
    days: int = 1


@worker("tests.typed_calls", params=TypedParams)
def typed(params: TypedParams, run: Run) -> int:
    """Returns its days."""
    return params.days


@worker("tests.typed_plain")
def plain(params: BaseModel, run: Run) -> None:
    """Has no params."""


def right(run: Run) -> tuple[Submitted, Submitted, int]:
    """Calls that are allowed."""
    return typed.run(region="eu", days=3), plain.run(), typed(TypedParams(region="us"), run)


def wrong() -> None:
    """Calls that are refused."""
    typed.run(region="asia")  # type: ignore[arg-type]
    typed.run(region="eu", day=1)  # type: ignore[call-arg]
    typed.run()  # type: ignore[call-arg]
    plain.run(region="eu")  # type: ignore[call-arg]


@worker("tests.typed_wrongly", params=TypedParams)  # type: ignore[arg-type]
def other(params: str, run: Run) -> None:
    """Takes other params than its model."""


@worker("tests.typed_batch", params=TypedParams, batch_size=10, batch_wait=0.5)
def together(batch: Sequence[TypedParams], run: BatchRun) -> list[int]:
    """Returns the days of each."""
    return [params.days for params in batch]


@worker("tests.typed_plain_batch", batch_size=10)
def plain_together(batch: list[BaseModel], run: BatchRun) -> None:
    """Has no params."""


def right_batch(run: BatchRun) -> tuple[Submitted, Submitted, list[int], int]:
    """Calls that are allowed."""
    called = together([TypedParams(region="us")], run)
    return together.run(region="eu", days=3), plain_together.run(), called, run.runs[0].attempt


def wrong_batch(run: Run, batch_run: BatchRun) -> None:
    """Calls that are refused."""
    together.run(region="asia")  # type: ignore[arg-type]
    together.run()  # type: ignore[call-arg]
    together(TypedParams(region="us"), batch_run)  # type: ignore[arg-type]
    together([TypedParams(region="us")], run)  # type: ignore[arg-type]
    batch_run.step("one", int)  # type: ignore[attr-defined]


@worker("tests.typed_batch_of_one", params=TypedParams, batch_size=10)  # type: ignore[arg-type]
def single(params: TypedParams, run: BatchRun) -> None:
    """Takes the params of one run."""


@worker("tests.typed_without_batch", params=TypedParams)  # type: ignore[arg-type]
def many(batch: Sequence[TypedParams], run: Run) -> None:
    """Takes many without `batch_size`."""
