"""Parameters as inputs made from the model: each type there and back, errors at their input, secrets, both ways."""

from __future__ import annotations

import datetime as dt
import re
from decimal import Decimal
from enum import Enum
from typing import Any, Literal, Optional

import pytest
from pydantic import BaseModel, Field, SecretStr, model_validator

from scheduling import registry
from scheduling.admin.params_form import ParamsForm
from scheduling.registry import Handler


class Colour(Enum):
    """Two."""

    RED = "red"
    BLUE = 2


class Part(BaseModel):
    """A nested model."""

    deep: int = 1


class Many(BaseModel):
    """A field of each kind."""

    needed: str
    region: Literal["eu", "us"] = "eu"
    colour: Colour = Colour.RED
    days: int = Field(1, ge=1, le=90, description="How far <b>back</b>.", title="Days back")
    share: float = 0.5
    price: Decimal = Decimal("1.10")
    dry: bool = False
    maybe: bool | None = None
    name: Optional[str] = Field(None, max_length=20, pattern="^[a-z]*$")  # noqa: UP045 - both spellings are met
    day: dt.date = dt.date(2026, 1, 1)
    at: dt.time = dt.time(8)
    moment: dt.datetime | None = None
    tags: list[str] = []
    part: Part = Part()
    token: SecretStr = SecretStr("")
    other_name: int = Field(3, alias="other-name")

    @model_validator(mode="after")
    def _whole(self) -> Many:
        if self.needed == "nobody":
            raise ValueError("nobody is nobody")
        return self


KINDS = {
    "needed": "text", "region": "choice", "colour": "choice", "days": "integer", "share": "number", "price": "decimal",
    "dry": "flag", "maybe": "flag", "name": "text", "day": "date", "at": "time", "moment": "text", "tags": "json",
    "part": "json", "token": "secret", "other-name": "integer",
}  # fmt: skip


@pytest.fixture
def handler(monkeypatch: pytest.MonkeyPatch) -> Handler:
    """Code that takes all of it."""
    return register(monkeypatch, "many", Many)


def register(monkeypatch: pytest.MonkeyPatch, name: str, model: type[BaseModel]) -> Handler:
    """Code of a model, for the length of a test."""
    made = Handler("worker", name, lambda params, run: None, params=model)
    monkeypatch.setitem(registry._handlers, ("worker", name), made)
    return made


def posted(form: ParamsForm, **written: str) -> dict[str, str]:
    """What a browser sends of a form, with some inputs changed."""
    assert form.handler is not None
    data = {"params.as": form.as_, "params.for": f"{form.handler.type}/{form.handler.name}", "params": "{}"}
    if form.inputs is not None:
        for field in form.inputs:
            data[field.html_name] = str(field.value() or "")
        data["params.other"] = "{}"
    for name, value in written.items():
        data[f"params.field.{name}"] = value
    return data


def test_each_field_has_its_input(handler: Handler) -> None:
    form = ParamsForm(handler, {}, inherited={"days": 7})
    assert form.inputs is not None
    assert {slot.name: slot.kind for slot in form.inputs.slots} == KINDS
    html = str(form)
    for text in (
        'name="params.field.days"', 'min="1" max="90"', 'placeholder="the target&#x27;s: 7"',
        "How far &lt;b&gt;back&lt;/b&gt;.", "Days back (<code>days</code>)",
        '<label for="id_params.field.needed" class="required">',
        '<option value="&quot;us&quot;">us</option>', '<option value="2">2</option>', "default: eu", 'maxlength="20"',
        'type="date"', 'type="time"', "list of text; as JSON", "integer, from 1, to 90",
    ):  # fmt: skip
        assert text in html, text
    assert "style=" not in html
    assert "onclick" not in html


VALUES: dict[str, Any] = {
    "needed": "x", "region": "us", "colour": 2, "days": 7, "share": 2, "price": "1.20", "dry": True, "maybe": None,
    "name": None, "day": "2026-02-03", "at": "08:30", "moment": "2026-03-10T12:00:00+01:00", "tags": ["a", 'b"<'],
    "part": {"deep": 3}, "token": "s3cret", "other-name": 4,
}  # fmt: skip


def test_what_is_not_touched_comes_back_as_it_was(handler: Handler) -> None:
    shown = ParamsForm(handler, VALUES)
    assert shown.as_ == "fields"
    again = ParamsForm(handler, VALUES, data=posted(shown))
    assert again.is_valid(), again.errors
    assert again.params == VALUES
    assert [type(value) for value in again.params.values()] == [type(VALUES[name]) for name in again.params]
    assert list(again.params) == list(VALUES)


def test_what_is_written_is_read_by_its_type(handler: Handler) -> None:
    written = {
        "needed": " two words ", "region": '"us"', "colour": "2", "days": "9", "share": "0.25", "price": "2.50",
        "dry": "true", "maybe": "false", "name": "abc", "day": "2026-12-31", "at": "09:15:30",
        "moment": "2026-03-10T12:00:00Z", "tags": '["x"]', "part": '{"deep": 5}', "token": "new", "other-name": "8",
    }  # fmt: skip
    form = ParamsForm(handler, {}, data=posted(ParamsForm(handler, {}), **written))
    assert form.is_valid(), form.errors
    assert form.params == {
        "needed": " two words ", "region": "us", "colour": 2, "days": 9, "share": 0.25, "price": "2.50", "dry": True,
        "maybe": False, "name": "abc", "day": "2026-12-31", "at": "09:15:30", "moment": "2026-03-10T12:00:00Z",
        "tags": ["x"], "part": {"deep": 5}, "token": "new", "other-name": 8,
    }  # fmt: skip


def test_an_empty_input_says_nothing(handler: Handler) -> None:
    data = posted(ParamsForm(handler, VALUES), needed="y", days="", dry="", tags="", token="", region="")
    form = ParamsForm(handler, VALUES, data=data)
    assert form.is_valid()
    assert not {"days", "dry", "tags", "token", "region"} & set(form.params)
    assert form.params["maybe"] is None  # it was null, and was not touched


@pytest.mark.parametrize(
    ("written", "name", "sentence"),
    [
        ({"needed": ""}, "needed", "Field required"),
        ({"days": "91"}, "days", "less than or equal to 90"),
        ({"days": "many"}, "days", "Enter a whole number."),
        ({"share": "1e999"}, "share", "Enter a number."),
        ({"share": "9" * 5_000}, "share", "Enter a number."),
        ({"region": '"mars"'}, "region", "Select a valid choice."),
        ({"name": "ABC"}, "name", "should match pattern"),
        ({"day": "2026-02-31"}, "day", "valid date"),
        ({"tags": "[1,"}, "tags", "This is not JSON"),
        ({"tags": '["a", 5]'}, "tags", "1: Input should be a valid string"),
        ({"part": '{"deep": "x"}'}, "part", "deep: Input should be a valid integer"),
        ({"needed": "nobody"}, "", "nobody is nobody"),
        ({"needed": "\x00"}, "needed", "Null characters are not allowed."),
    ],
)
def test_an_error_is_told_at_its_input(handler: Handler, written: dict[str, str], name: str, sentence: str) -> None:
    stored = {"needed": "x"}
    form = ParamsForm(handler, stored, data=posted(ParamsForm(handler, stored), **written))
    assert not form.is_valid()
    assert set(form.errors) == {name}
    assert sentence in form.errors[name]
    html = str(form)
    if name:
        place = html.split(f'data-param="{name}"')[1].split('data-param="')[0]
        assert re.search(r'class="errorlist"[^>]*><li>[^<]*', place)
        assert 'aria-invalid="true"' in place
        assert f'aria-describedby="id_params.field.{name}_error id_params.field.{name}_helptext"' in place
    # What was typed is still there.
    typed = next(iter(written.values()))
    assert form.inputs is not None
    assert form.inputs[next(iter(written))].value() == typed


def test_the_targets_own_value_does_for_a_required_one(handler: Handler) -> None:
    shown = ParamsForm(handler, {}, inherited={"needed": "from the target"})
    assert 'class="required"' not in str(shown)
    form = ParamsForm(handler, {}, inherited={"needed": "from the target"}, data=posted(shown))
    assert form.is_valid()
    assert form.params == {}


def test_secrets_are_never_sent_and_are_kept(handler: Handler) -> None:
    stored = {"needed": "x", "token": "s3cret"}
    shown = ParamsForm(handler, stored, inherited={"token": "0ther"})
    for form in (shown, shown.switched("json"), ParamsForm(handler, stored, as_="json")):
        assert "s3cret" not in str(form)
        assert "0ther" not in str(form)
        assert "••••••" in str(form)
    kept = ParamsForm(handler, stored, data={"params": '{"needed": "y", "token": "••••••"}'})
    assert kept.is_valid()
    assert kept.params == {"needed": "y", "token": "s3cret"}


class Plain(BaseModel):
    """Takes by the same name what is no secret to it."""

    token: str = ""


class Other(BaseModel):
    """Takes a secret by the same name."""

    token: SecretStr = SecretStr("")


@pytest.mark.parametrize("model", [Plain, Other])
def test_a_secret_is_not_carried_to_other_code(
    handler: Handler, monkeypatch: pytest.MonkeyPatch, model: type[BaseModel]
) -> None:
    other = register(monkeypatch, "other", model)
    stored = {"needed": "x", "token": "s3cret"}
    # The target was changed without a script: the inputs are those of the former code.
    form = ParamsForm(other, stored, stored_for=handler, data=posted(ParamsForm(handler, stored)))
    assert not form.is_valid()
    assert form.errors == {"token": "It was hidden, and is not known for this code: write it again."}
    assert "s3cret" not in str(form)


def test_equal_names_are_kept_when_the_target_changes(handler: Handler, monkeypatch: pytest.MonkeyPatch) -> None:
    class Fewer(BaseModel, extra="forbid"):
        needed: str
        days: int = 1

    other = register(monkeypatch, "fewer", Fewer)
    stored = {"needed": "x", "days": 7, "region": "us"}
    data = posted(ParamsForm(handler, stored), needed="typed")
    form = ParamsForm(other, stored, stored_for=handler, data=data)
    assert form.is_valid(), form.errors
    assert form.params == {"needed": "typed", "days": 7}
    assert 'value="typed"' in str(form.switched(""))


def test_from_one_way_of_writing_to_the_other(handler: Handler) -> None:
    stored = {"needed": "x"}
    data = posted(ParamsForm(handler, stored), needed="typed", days="5")
    json_ = ParamsForm(handler, stored, data=data).switched("json")
    assert json_.as_ == "json"
    assert "&quot;needed&quot;: &quot;typed&quot;,\n  &quot;days&quot;: 5" in str(json_)
    back = ParamsForm(handler, stored, data={"params": '{"needed": "z"}', "params.as": "json"}).switched("fields")
    assert back.as_ == "fields"
    assert 'value="z"' in str(back)
    # What cannot be read stays as it was written, with the reason.
    broken = ParamsForm(handler, stored, data={"params": '{"needed": ', "params.as": "json"}).switched("fields")
    assert broken.as_ == "json"
    assert "{&quot;needed&quot;: " in str(broken)
    assert "This is not JSON" in str(broken)


@pytest.mark.parametrize(
    "value", [{"days": "7"}, {"days": True}, {"needed": 5}, {"region": "mars"}, {"needed": "a\rb"}]
)
def test_a_value_that_its_input_cannot_hold_is_shown_as_json(handler: Handler, value: dict[str, Any]) -> None:
    form = ParamsForm(handler, {"needed": "x", **value})
    assert form.as_ == "json"
    assert form.inputs is None
    assert "so all of it is shown as JSON" in str(form)
    assert 'type="hidden" name="params.as" value="json"' in str(form)


def test_text_of_several_lines_has_room_for_them(handler: Handler) -> None:
    stored = {"needed": "one\ntwo\n"}
    shown = ParamsForm(handler, stored)
    assert '<textarea name="params.field.needed"' in str(shown)
    for text, read in (("one\r\ntwo\r\n", "one\ntwo\n"), ("one\r\ntwo", "one\ntwo")):
        form = ParamsForm(handler, stored, data=posted(shown, needed=text))
        assert form.is_valid()
        assert form.params == {"needed": read}


def test_names_that_the_model_does_not_know_are_kept(handler: Handler) -> None:
    stored = {"needed": "x", "extra": {"a": 1}}
    shown = ParamsForm(handler, stored)
    assert "Other names" in str(shown)
    data = posted(shown) | {"params.other": '{"extra": {"a": 2}}'}
    form = ParamsForm(handler, stored, data=data)
    assert form.is_valid()
    assert form.params == {"needed": "x", "extra": {"a": 2}}


def test_code_that_is_not_registered_and_models_without_a_schema_take_json(monkeypatch: pytest.MonkeyPatch) -> None:
    class Odd(BaseModel, arbitrary_types_allowed=True):
        thing: re.Pattern[str] | object = None

    class Strange(BaseModel, arbitrary_types_allowed=True):
        thing: ParamsForm | None = None

    for handler in (None, register(monkeypatch, "odd", Odd), register(monkeypatch, "strange", Strange)):
        form = ParamsForm(handler, {"thing": None})
        assert 'name="params"' in str(form)
        taken = ParamsForm(handler, {}, data={"params": '{"thing": null}'})
        assert taken.is_valid()
        assert taken.params == {"thing": None}
    assert ParamsForm(None, {}).inputs is None
    assert ParamsForm(registry.find("worker", "strange"), {}).inputs is None


def test_what_plain_sql_has_spoilt_is_shown_and_can_be_mended(handler: Handler) -> None:
    form = ParamsForm(handler, ["no", "object"], inherited="nonsense")
    assert form.as_ == "json"
    assert "&quot;no&quot;" in str(form)
    mended = ParamsForm(handler, ["no", "object"], inherited="nonsense", data={"params": '{"needed": "x"}'})
    assert mended.is_valid()


def test_hostile_text_stays_text(handler: Handler) -> None:
    hostile = '"><script>alert(1)</script>'
    for form in (
        ParamsForm(handler, {"needed": hostile}),
        ParamsForm(handler, {"needed": "x", hostile: hostile}),
        ParamsForm(handler, {}, inherited={"needed": hostile}),
        ParamsForm(handler, {}, data={"params.as": "fields", "params.for": hostile, "params": hostile}),
    ):
        assert "<script>" not in str(form)


def test_a_handler_that_takes_nothing_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    form = ParamsForm(registry.find("worker", "tests.noop"), {})
    assert "It takes no parameters." in str(form)
    taken = ParamsForm(registry.find("worker", "tests.noop"), {}, data=posted(form))
    assert taken.is_valid()
    assert taken.params == {}
