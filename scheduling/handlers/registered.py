"""The type of a registered function: it can be called, and it can be run by a consumer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import wraps
from typing import Any, ParamSpec, Protocol, TypeVar

from pydantic import BaseModel

from scheduling.core.submitted import Submitted
from scheduling.handlers.batch_run import BatchRun
from scheduling.handlers.params_model import instance
from scheduling.handlers.run import Run

Fields = ParamSpec("Fields")
Model_contra = TypeVar("Model_contra", contravariant=True)
Result_co = TypeVar("Result_co", covariant=True)

Submit = Callable[[str, BaseModel], Submitted]
"""Asks for a run of the worker with this name and these params."""


class RegisteredWorker(Protocol[Fields, Model_contra, Result_co]):
    """A function that is registered as a worker. `Fields` are the fields of its params model, as keyword arguments."""

    def __call__(self, params: Model_contra, run: Run, /) -> Result_co: ...

    def run(self, *args: Fields.args, **fields: Fields.kwargs) -> Submitted:
        """Ask for one run now, with these params; see `scheduling.api.run`.

        Raises:
            ParamsInvalid: the params do not fit the params model.
        """
        ...


class RegisteredBatch(Protocol[Fields, Model_contra, Result_co]):
    """A function that is registered as a worker with `batch_size`: it gets the params of many runs."""

    def __call__(self, batch: Sequence[Model_contra], run: BatchRun, /) -> Result_co: ...

    def run(self, *args: Fields.args, **fields: Fields.kwargs) -> Submitted:
        """Ask for one run; see `RegisteredWorker.run`."""
        ...


class WayIn:
    """Leads from a registered function to `scheduling.api`, which lies above this layer. Django's start sets it."""

    submit: Submit | None = None


@dataclass(frozen=True)
class RunMethod:
    """The method `run` of a registered function."""

    name: str
    model: type[BaseModel]

    def __call__(self, **fields: Any) -> Submitted:
        """Ask for one run now; see `RegisteredWorker.run`."""
        if WayIn.submit is None:
            raise RuntimeError("Runs can be asked for when Django has started (django.setup).")
        return WayIn.submit(self.name, instance(self.model, fields))


def with_run(function: Any, name: str, model: type[BaseModel]) -> Any:
    """Give a registered function the method `run`.

    Returns:
        The function itself; or a function that calls it, if it is registered under another name, too, or allows no
        attributes, as a bound method. So the `run` of each asks for its own name.
    """
    method, own = RunMethod(name, model), getattr(function, "run", None)
    if not (isinstance(own, RunMethod) and own.name != name):
        with suppress(AttributeError):
            function.run = method
            return function

    @wraps(function)
    def call(params: Any, run: Any) -> Any:
        return function(params, run)

    call.run = method  # type: ignore[attr-defined]
    return call
