"""Accepts `options_interface`, the delivery options in the params of the original contract (docs/original-contract.md).

Every report accepts these options. They concern the delivery and not the report. A params model therefore receives the
options only if the model has a field `options_interface`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, PrivateAttr, create_model, model_validator

from reports.delivery_options import NO_OPTIONS, OPTIONS, DeliveryOptions, OptionsInterface, WithOptions


class _Params(BaseModel):
    """Holds the delivery options beside the fields of a params model."""

    _delivery_options: DeliveryOptions = PrivateAttr(default=NO_OPTIONS)


def accepting(model: type[BaseModel]) -> type[BaseModel]:
    """A subclass of the params model that accepts `options_interface` beside the model's own fields.

    The subclass refuses options that are unknown or wrong. `options_of` gives the options of an instance. If the model
    has a field `options_interface`, this field receives the given options, with `delivery.instant` set to true.
    """
    declared = any(OPTIONS in {name, field.alias, field.validation_alias} for name, field in model.model_fields.items())

    @classmethod  # type: ignore[misc]
    def sort_out(cls: Any, data: Any, handler: Any) -> Any:
        if not isinstance(data, Mapping) or OPTIONS not in data:
            return handler(data)
        found = WithOptions.model_validate({OPTIONS: data[OPTIONS]}).options_interface
        rest = {key: value for key, value in data.items() if key != OPTIONS}
        params = handler({**rest, OPTIONS: _received(found)} if declared else rest)
        if found is not None and found.delivery is not None:
            params._delivery_options = found.delivery
        return params

    validators: dict[str, Any] = {"sort_out_options_interface": model_validator(mode="wrap")(sort_out)}
    return create_model(
        model.__name__,
        __base__=(model, _Params),
        __module__=model.__module__,
        __doc__=model.__doc__,
        __validators__=validators,
    )


def _received(found: OptionsInterface | None) -> dict[str, Any] | None:
    """The options as a params model with a field `options_interface` receives them: those that were given, checked."""
    if found is None:
        return None
    options = found.model_dump(mode="json", exclude_unset=True)
    return options if found.delivery is None else {"delivery": {**options["delivery"], "instant": True}}


def options_of(params: Any) -> DeliveryOptions:
    """The delivery options with which these params were validated. Without options, all of them have their defaults."""
    return getattr(params, "_delivery_options", NO_OPTIONS)
