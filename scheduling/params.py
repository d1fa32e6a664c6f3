"""Params: a handler's typed contract, checked when saved, by `check`, and before each run.

In rising precedence: the model's defaults, the target row's, the Scheduler's, the run's.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ValidationError

from scheduling.registry import Handler


class ParamsInvalid(ValueError):
    """Params do not fit the handler's model.

    `errors` maps a field's dotted name ('' for the whole) to a sentence.
    """

    def __init__(self, errors: dict[str, str]) -> None:
        super().__init__("; ".join(f"{name}: {text}" if name else text for name, text in errors.items()))
        self.errors = errors


def merge(*layers: Mapping[str, Any] | None) -> dict[str, Any]:
    """Params in rising precedence; a later layer replaces whole values, never parts of one."""
    merged: dict[str, Any] = {}
    for layer in layers:
        if layer:
            merged.update(layer)
    return merged


def validate(handler: Handler, params: Mapping[str, Any]) -> BaseModel:
    """The typed params of a run.

    Raises:
        ParamsInvalid: a sentence for each field that does not fit.
    """
    try:
        return handler.params.model_validate(dict(params))
    except ValidationError as error:
        errors: dict[str, str] = {}
        for problem in error.errors(include_url=False, include_context=False, include_input=False):
            errors.setdefault(".".join(str(part) for part in problem["loc"]), problem["msg"])
        raise ParamsInvalid(errors) from None
