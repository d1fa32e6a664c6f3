"""Every report accepts the param `options_interface`, but only a params model that declares the param receives it.

Options that are unknown or wrong are refused when a schedule is saved.
"""

from __future__ import annotations

import sys
from typing import Any

import pytest
from django.core.exceptions import ValidationError
from pydantic import BaseModel, ConfigDict, Field

from reports.delivery_options import NO_OPTIONS, DeliveryOptions
from reports.models import Report
from reports.options import options_of
from reports.registry import report
from scheduling.handlers import Handler, find
from scheduling.handlers.params import ParamsInvalid, validate
from scheduling.models import Scheduler
from tests.reports.support import Numbers

CHOSEN = {"delivery": {"instant": False, "format": "jsonl", "recipients": "ann@example.com, bob@example.com"}}
RECEIVED = {
    "delivery": {"instant": True, "format": "jsonl", "recipients": ["ann@example.com", "bob@example.com"]}
}  # fmt: skip
KNOWN = "Known options: instant, format, filename, recipients, attach"

pytestmark = pytest.mark.usefixtures("own_registry")


class Strict(BaseModel):
    """A params model that refuses unknown fields."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    days: int = 1


class Declared(Strict):
    """A params model that declares `options_interface`."""

    options_interface: dict[str, Any] | None = Field(default_factory=dict)


class Aliased(Strict):
    """A params model in which `options_interface` is the alias of the field `options`."""

    options: dict[str, Any] = Field(default_factory=dict, alias="options_interface")


class Assigned(BaseModel):
    """A params model that validates an assignment."""

    model_config = ConfigDict(validate_assignment=True)
    days: int = 1


def handler(model: type[BaseModel]) -> Handler:
    """Register a report with this params model and return its handler."""
    report("tests.options", params=model)(Numbers)
    return find("report", "tests.options")


def chosen(delivery: Any) -> DeliveryOptions:
    """Return the delivery options of a run with this `delivery`."""
    return options_of(validate(handler(Strict), {"options_interface": {"delivery": delivery}}))


def refused(options: Any) -> dict[str, str]:
    """Check that these options are refused, and return the errors."""
    with pytest.raises(ParamsInvalid) as caught:
        validate(handler(Strict), {"options_interface": options})
    return caught.value.errors


def test_a_model_without_the_field_does_not_receive_the_options() -> None:
    params = validate(handler(Strict), {"days": 3, "options_interface": CHOSEN})
    assert params.model_dump() == {"days": 3}
    assert options_of(params) == DeliveryOptions(format="jsonl", recipients=("ann@example.com", "bob@example.com"))


def test_a_report_without_params_accepts_the_options() -> None:
    report("tests.options")(Numbers)
    params = validate(find("report", "tests.options"), {"options_interface": CHOSEN})
    assert params.model_dump() == {}
    assert options_of(params).format == "jsonl"


@pytest.mark.parametrize(("model", "name"), [(Declared, "options_interface"), (Aliased, "options")])
def test_a_model_with_the_field_receives_the_options(model: type[BaseModel], name: str) -> None:
    params = validate(handler(model), {"options_interface": CHOSEN})
    assert getattr(params, name) == RECEIVED
    assert isinstance(params, model)
    assert options_of(params).recipients == ("ann@example.com", "bob@example.com")


@pytest.mark.parametrize(
    ("given", "received"), [(None, None), ({}, {}), ({"delivery": {}}, {"delivery": {"instant": True}})]
)
def test_a_model_with_the_field_receives_only_what_was_given(given: Any, received: Any) -> None:
    params = validate(handler(Declared), {"options_interface": given})
    assert params.model_dump() == {"days": 1, "options_interface": received}


def test_options_and_their_values_may_be_null() -> None:
    nothing = dict.fromkeys(DeliveryOptions.model_fields)
    for options in (None, {}, {"delivery": None}, {"delivery": {}}, {"delivery": nothing}):
        params = validate(handler(Strict), {"options_interface": options})
        assert params.model_dump() == {"days": 1}
        assert options_of(params) == NO_OPTIONS


def test_params_without_options_have_the_defaults() -> None:
    assert options_of(validate(handler(Strict), {})) == NO_OPTIONS
    assert options_of(None) == NO_OPTIONS
    assert NO_OPTIONS.model_dump() == {
        "instant": True, "format": "", "filename": "", "recipients": (), "attach": True,
    }  # fmt: skip


def test_the_stored_params_are_not_changed() -> None:
    stored = {"options_interface": {"delivery": {"instant": False}}}
    validate(handler(Declared), stored)
    assert stored == {"options_interface": {"delivery": {"instant": False}}}


def test_other_keys_are_still_refused() -> None:
    with pytest.raises(ParamsInvalid) as caught:
        validate(handler(Strict), {"dayz": 3, "options_interface": CHOSEN})
    assert set(caught.value.errors) == {"dayz"}


def test_params_that_validate_an_assignment_keep_their_options() -> None:
    params = validate(handler(Assigned), {"options_interface": CHOSEN})
    params.days = 4  # type: ignore[attr-defined]
    assert (params.model_dump(), options_of(params).format) == ({"days": 4}, "jsonl")


@pytest.mark.parametrize("options", ["instant", [], {"delivery": "now"}, {"delivery": []}])
def test_options_of_another_shape_are_refused_with_an_example(options: object) -> None:
    (sentence,) = refused(options).values()
    assert sentence == (
        'options_interface is an object such as {"delivery": {"format": "csv", "recipients": ["ann@example.com"]}}.'
    )


@pytest.mark.parametrize(
    ("options", "name", "sentence"),
    [
        ({"theme": "dark"}, "options_interface", 'there is no option "theme". Known options: delivery'),
        ({"delivery": {"to": "a"}}, "options_interface.delivery", f'there is no option "to". {KNOWN}'),
        ({"delivery": {"Format": "csv"}}, "options_interface.delivery", f'there is no option "Format". {KNOWN}'),
        ({"delivery": {"a\x00": 1}}, "options_interface.delivery", f'there is no option "a\\x00". {KNOWN}'),
        ({"delivery": {"formats": None}}, "options_interface.delivery", f'there is no option "formats". {KNOWN}'),
        ({"delivery": {"attach": "perhaps"}}, "options_interface.delivery.attach", "must be true or false"),
        ({"delivery": {"instant": "soon"}}, "options_interface.delivery.instant", "must be true or false"),
        ({"delivery": {"filename": 7}}, "options_interface.delivery.filename", "must be a text"),
        (
            {"delivery": {"filename": "x" * 201}},
            "options_interface.delivery.filename",
            "String should have at most 200 characters",
        ),
        ({"delivery": {"format": ["csv"]}}, "options_interface.delivery.format", "must be a text"),
        (
            {"delivery": {"format": "pdf"}},
            "options_interface.delivery.format",
            "must be one of csv, html, json, jsonl, xlsx",
        ),
        (
            {"delivery": {"recipients": ["ann"]}},
            "options_interface.delivery.recipients",
            '"ann" is not an e-mail address',
        ),
    ],
)
def test_an_unknown_or_wrong_option_is_refused(options: Any, name: str, sentence: str) -> None:
    assert refused(options) == {name: sentence}


def test_a_name_that_cannot_be_stored_is_refused() -> None:
    assert set(refused({"delivery": {"filename": "\ud800"}})) == {"options_interface.delivery.filename"}


def test_a_format_whose_package_is_missing_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    assert chosen({"format": "xlsx"}).format == "xlsx"
    monkeypatch.setitem(sys.modules, "xlsxwriter", None)
    assert refused({"delivery": {"format": "xlsx"}}) == {
        "options_interface.delivery.format": (
            'The format xlsx needs XlsxWriter. Install it: pip install "cronsite[xlsx]"'
        )
    }


@pytest.mark.django_db
def test_a_schedule_with_an_unknown_option_is_not_saved() -> None:
    handler(Strict)
    row = Report.objects.create(controller="tests.options")
    with pytest.raises(ValidationError, match='there is no option "to"'):
        Scheduler.objects.create(
            report=row, schedule="0 6 * * 1", params={"options_interface": {"delivery": {"to": 1}}}
        )
    Scheduler.objects.create(report=row, schedule="0 6 * * 1", params={"options_interface": CHOSEN})


@pytest.mark.parametrize(
    ("filename", "stem"),
    [
        ("", "own"),
        ("  ", "own"),
        ("sales", "sales"),
        ("sales.CSV", "sales"),
        ("sales.json", "sales.json"),
        (".csv", "own"),
    ],
)
def test_the_chosen_name_replaces_the_name_of_the_controller(filename: str, stem: str) -> None:
    assert chosen({"filename": filename}).stem("own", "csv") == stem


def test_the_model_keeps_its_name_and_its_fields() -> None:
    schema = handler(Strict).params.model_json_schema()
    assert (schema["title"], list(schema["properties"])) == ("Strict", ["days"])
