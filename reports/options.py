"""`options_interface`: how the seeds' params say that a report is to be delivered.

A scheduled report always runs in the foreground of its attempt, so that its errors reach the
retry policy: whatever `options_interface.delivery.instant` says, it is true here. The key belongs
to the delivery and not to the report; so a params model sees it only if it declares it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, create_model, model_validator
from pydantic_core import PydanticCustomError

OPTIONS = "options_interface"

EXAMPLE = '{"delivery": {"instant": true}}'


def instant(options: Any) -> dict[str, Any] | None:
    """A copy of the options in which a delivery, if there is one, is instant.

    Raises:
        PydanticCustomError: when they are not of the shape {"delivery": {...}}.
    """
    if options is None:
        return None
    delivery = options.get("delivery") if isinstance(options, Mapping) else None
    if not isinstance(options, Mapping) or not isinstance(delivery, Mapping | None):
        raise PydanticCustomError(OPTIONS, "{text}", {"text": f"{OPTIONS} is an object such as {EXAMPLE}."})
    return dict(options) if delivery is None else {**options, "delivery": {**delivery, "instant": True}}


def accepting(model: type[BaseModel]) -> type[BaseModel]:
    """The same params model, which takes `options_interface` beside its own fields.

    A model that declares the key gets it with the delivery made instant; from any other it is
    kept away, so that one with `extra="forbid"` does not refuse it.
    """
    declared = any(OPTIONS in {name, field.alias, field.validation_alias} for name, field in model.model_fields.items())

    def sort_out(data: Any) -> Any:
        if not isinstance(data, Mapping) or OPTIONS not in data:
            return data
        options = instant(data[OPTIONS])
        rest = {key: value for key, value in data.items() if key != OPTIONS}
        return {**rest, OPTIONS: options} if declared else rest

    validators: dict[str, Any] = {"sort_out_options_interface": model_validator(mode="before")(sort_out)}
    return create_model(
        model.__name__,
        __base__=model,
        __module__=model.__module__,
        __doc__=model.__doc__,
        __validators__=validators,
    )
