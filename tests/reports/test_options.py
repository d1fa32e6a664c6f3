"""Every report accepts the param `options_interface`, but only a params model that declares the param receives it.

If `options_interface` has a `delivery`, the model receives it with `delivery.instant` set to true.
"""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import BaseModel, ConfigDict, Field

from reports.registry import report
from scheduling.handlers import Handler, find
from scheduling.handlers.params import ParamsInvalid, validate
from tests.reports.support import Numbers

LATER = {"delivery": {"instant": False, "to": "a@example.com"}, "theme": "dark"}

pytestmark = pytest.mark.usefixtures("own_registry")


class Strict(BaseModel):
    """A params model that refuses unknown fields."""

    model_config = ConfigDict(extra="forbid")
    days: int = 1


class Declared(Strict):
    """A params model that declares `options_interface`."""

    options_interface: dict[str, Any] = Field(default_factory=dict)


class Aliased(Strict):
    """A params model in which `options_interface` is the alias of the field `options`."""

    options: dict[str, Any] = Field(default_factory=dict, alias="options_interface")


def handler(model: type[BaseModel]) -> Handler:
    """Register a report with this params model and return its handler."""
    report("tests.options", params=model)(Numbers)
    return find("report", "tests.options")


def test_a_model_without_the_field_does_not_receive_the_options() -> None:
    assert validate(handler(Strict), {"days": 3, "options_interface": LATER}).model_dump() == {"days": 3}


def test_a_report_without_params_accepts_the_options() -> None:
    report("tests.options")(Numbers)
    assert validate(find("report", "tests.options"), {"options_interface": LATER}).model_dump() == {}


@pytest.mark.parametrize(("model", "name"), [(Declared, "options_interface"), (Aliased, "options")])
def test_a_model_with_the_field_gets_an_instant_delivery(model: type[BaseModel], name: str) -> None:
    params = validate(handler(model), {"options_interface": LATER})
    assert getattr(params, name) == {"delivery": {"instant": True, "to": "a@example.com"}, "theme": "dark"}
    assert isinstance(params, model)


def test_options_without_a_delivery_are_not_changed() -> None:
    params = validate(handler(Declared), {"options_interface": {"theme": "dark"}})
    assert params.model_dump() == {"days": 1, "options_interface": {"theme": "dark"}}


def test_options_and_delivery_may_be_null() -> None:
    assert validate(handler(Strict), {"options_interface": None}).model_dump() == {"days": 1}
    assert validate(handler(Strict), {"options_interface": {"delivery": None}}).model_dump() == {"days": 1}


def test_the_stored_params_are_not_changed() -> None:
    stored = {"options_interface": {"delivery": {"instant": False}}}
    validate(handler(Declared), stored)
    assert stored == {"options_interface": {"delivery": {"instant": False}}}


def test_other_keys_are_still_refused() -> None:
    with pytest.raises(ParamsInvalid) as caught:
        validate(handler(Strict), {"dayz": 3, "options_interface": LATER})
    assert set(caught.value.errors) == {"dayz"}


@pytest.mark.parametrize("options", ["instant", [], {"delivery": "now"}])
def test_options_of_another_shape_are_refused_with_an_example(options: object) -> None:
    with pytest.raises(ParamsInvalid, match=r'such as \{"delivery": \{"instant": true\}\}'):
        validate(handler(Strict), {"options_interface": options})


def test_the_model_keeps_its_name_and_its_fields() -> None:
    schema = handler(Strict).params.model_json_schema()
    assert (schema["title"], list(schema["properties"])) == ("Strict", ["days"])
