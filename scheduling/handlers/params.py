"""Merges and validates params.

Params come from four layers: the defaults of the params model, the target row, the Scheduler, and the run. A later
layer overrides an earlier layer. The handler's params model validates the params when they are saved, before each run,
and in `manage.py check`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel

from scheduling.handlers.params_model import ParamsInvalid, instance, unknown_params
from scheduling.handlers.registry import Handler

__all__ = ["ParamsInvalid", "merge", "unknown", "validate", "validate_for_run"]


def merge(*layers: Mapping[str, Any] | None) -> dict[str, Any]:
    """Merge layers of params. If several layers have a param, the last layer gives its whole value."""
    return {name: value for layer in layers for name, value in (layer or {}).items()}


def validate(handler: Handler, params: Mapping[str, Any], inherited: Mapping[str, Any] | None = None) -> BaseModel:
    """The params as an instance of the handler's params model, before they are stored. See `instance`."""
    return instance(handler.params, params, inherited)


def validate_for_run(handler: Handler, params: Mapping[str, Any]) -> tuple[BaseModel, list[str]]:
    """The stored params of a run as an instance of the handler's params model, and the names that were left out.

    The handler may have had a param when it was stored, and lost it since. This must not make all its runs fail.

    Raises:
        ParamsInvalid: the other params do not fit.
    """
    return instance(handler.params, {}, params), unknown(handler, params)


def unknown(handler: Handler, params: Mapping[str, Any]) -> list[str]:
    """The names of params that the handler's params model does not know."""
    return unknown_params(handler.params, params)
