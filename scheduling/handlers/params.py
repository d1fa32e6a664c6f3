"""Merges and validates params.

Params come from four layers: the defaults of the params model, the target row, the Scheduler, and the run. A later
layer overrides an earlier layer. The handler's params model validates the params when they are saved, before each run,
and in `manage.py check`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ValidationError

from scheduling.handlers.registry import Handler


class ParamsInvalid(ValueError):
    """Params do not fit the handler's params model.

    `errors` maps the dotted name of a field to a sentence. The name is '' for an error that concerns no single field.
    """

    def __init__(self, errors: dict[str, str]) -> None:
        super().__init__("; ".join(f"{name}: {text}" if name else text for name, text in errors.items()))
        self.errors = errors


def merge(*layers: Mapping[str, Any] | None) -> dict[str, Any]:
    """Merge layers of params. If several layers have a param, the last layer gives its whole value."""
    return {name: value for layer in layers for name, value in (layer or {}).items()}


def validate(handler: Handler, params: Mapping[str, Any]) -> BaseModel:
    """The params as an instance of the handler's params model.

    Raises:
        ParamsInvalid: the params do not fit. The error has a sentence for each wrong field.
    """
    try:
        return handler.params.model_validate(dict(params))
    except ValidationError as error:
        errors: dict[str, str] = {}
        for problem in error.errors(include_url=False, include_context=False, include_input=False):
            errors.setdefault(".".join(str(part) for part in problem["loc"]), problem["msg"])
        raise ParamsInvalid(errors) from None
