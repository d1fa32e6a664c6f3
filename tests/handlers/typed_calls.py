"""Calls that mypy checks in `make lint`. An `ignore` that is not needed is an error there, so each one is a test."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel

from scheduling.api import Submitted
from scheduling.handlers import Run, worker


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
