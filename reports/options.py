"""Accepts `options_interface`, the delivery options in the params of the original contract (docs/original-contract.md).

The retry policy must see the errors of a report. A scheduled report is therefore always made within its attempt, and
`options_interface.delivery.instant` is always set to true.

The options concern the delivery and not the report. A params model therefore receives the options only if the model has
a field `options_interface`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, create_model, model_validator
from pydantic_core import PydanticCustomError

OPTIONS = "options_interface"

EXAMPLE = '{"delivery": {"instant": true}}'


def instant(options: Any) -> dict[str, Any] | None:
    """Return a copy of the options. If the copy has a `delivery`, its `instant` is set to true. None gives None.

    Raises:
        PydanticCustomError: when the options do not have the shape {"delivery": {...}}.
    """
    if options is None:
        return None
    delivery = options.get("delivery") if isinstance(options, Mapping) else None
    if not isinstance(options, Mapping) or not isinstance(delivery, Mapping | None):
        raise PydanticCustomError(OPTIONS, "{text}", {"text": f"{OPTIONS} is an object such as {EXAMPLE}."})
    return dict(options) if delivery is None else {**options, "delivery": {**delivery, "instant": True}}


def accepting(model: type[BaseModel]) -> type[BaseModel]:
    """A subclass of the params model that accepts `options_interface` beside the model's own fields.

    A model with a field `options_interface` receives the options, with `delivery.instant` set to true. For other
    models, the options are removed, because a model with `extra="forbid"` would refuse the options.
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
        model.__name__, __base__=model, __module__=model.__module__, __doc__=model.__doc__, __validators__=validators
    )
