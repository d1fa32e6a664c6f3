"""Merges and validates params.

Params come from four layers: the defaults of the params model, the target row, the Scheduler, and the run. A later
layer overrides an earlier layer. The handler's params model validates the params when they are saved, before each run,
and in `manage.py check`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel

from scheduling.handlers.params_model import ParamsInvalid, instance
from scheduling.handlers.registry import Handler

__all__ = ["ParamsInvalid", "merge", "validate"]


def merge(*layers: Mapping[str, Any] | None) -> dict[str, Any]:
    """Merge layers of params. If several layers have a param, the last layer gives its whole value."""
    return {name: value for layer in layers for name, value in (layer or {}).items()}


def validate(handler: Handler, params: Mapping[str, Any]) -> BaseModel:
    """The params as an instance of the handler's params model. The errors are those of `instance`."""
    return instance(handler.params, params)
