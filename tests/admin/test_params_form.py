"""Tests of the params form, which has an input for each field of the params model and a text area with JSON.

The text area holds the same params as the inputs. In this file, "the box" means the text area.
"""

from __future__ import annotations

import json
import re
from typing import Any, ClassVar

import pytest
from django.core.exceptions import ValidationError
from django.test import Client
from django.urls import reverse
from pydantic import BaseModel, Field, SecretStr, model_validator

from scheduling.admin.params.form import ParamsForm
from scheduling.handlers import Handler, registry
from scheduling.handlers.validation import mark_checked
from scheduling.models import Scheduler, SchedulerExecution
from tests.admin.params_models import Many
from tests.admin.scheduler_form import form as scheduler_values
from tests.factories import FailedExecutionFactory, SchedulerExecutionFactory, SchedulerFactory, WorkerFactory

KINDS = {
    "needed": "text", "region": "choice", "colour": "choice", "days": "integer", "share": "number", "price": "decimal",
    "dry": "flag", "maybe": "flag", "name": "text", "day": "date", "at": "time", "moment": "text", "tags": "words",
    "part": "json", "token": "secret", "other-name": "integer",
}  # fmt: skip


@pytest.fixture
def handler(monkeypatch: pytest.MonkeyPatch) -> Handler:
    """A handler whose params model has one field of every kind."""
    return register(monkeypatch, "many", Many)


def register(monkeypatch: pytest.MonkeyPatch, name: str, model: type[BaseModel]) -> Handler:
    """Register a handler with this params model until the end of the test."""
    made = Handler("worker", name, lambda params, run: None, params=model)
    monkeypatch.setitem(registry._handlers, ("worker", name), made)
    return made


def posted(form: ParamsForm, **written: str) -> dict[str, str]:
    """Return the data that a browser posts. `written` holds the new values of the inputs that the user has changed."""
    assert form.handler is not None
    data = {"params": form.text, "params.was": form.base}
    if form.inputs is not None:
        data["params.for"] = f"{form.handler.type}/{form.handler.name}"
        data |= {field.html_name: str(field.value() or "") for field in form.inputs}
    return data | {f"params.field.{name}": value for name, value in written.items()}


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
        'type="date"', 'type="time"', "list of text; one in each line", "whole number, 1 to 90",
    ):  # fmt: skip
        assert text in html, text
    assert "style=" not in html
    assert "onclick" not in html


VALUES: dict[str, Any] = {
    "needed": "x", "region": "us", "colour": 2, "days": 7, "share": 2, "price": "1.20", "dry": True, "maybe": None,
    "name": None, "day": "2026-02-03", "at": "08:30", "moment": "2026-03-10T12:00:00+01:00", "tags": ["a", 'b"<'],
    "part": {"deep": 3}, "token": "s3cret", "other-name": 4,
}  # fmt: skip


def test_an_unchanged_form_keeps_the_stored_params(handler: Handler) -> None:
    shown = ParamsForm(handler, VALUES)
    assert not shown.open
    again = ParamsForm(handler, VALUES, data=posted(shown))
    assert again.is_valid(), again.errors
    assert again.params == VALUES
    assert [type(value) for value in again.params.values()] == [type(VALUES[name]) for name in again.params]
    assert list(again.params) == list(VALUES)


def test_inputs_are_converted_to_the_types_of_their_fields(handler: Handler) -> None:
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


def test_an_empty_input_gives_no_param(handler: Handler) -> None:
    data = posted(ParamsForm(handler, VALUES), needed="y", days="", dry="", tags="", token="", region="")
    form = ParamsForm(handler, VALUES, data=data)
    assert form.is_valid()
    assert not {"days", "dry", "tags", "token", "region"} & set(form.params)
    assert form.params["maybe"] is None  # the stored null stays, because the user has not changed it


@pytest.mark.parametrize(
    ("written", "name", "sentence"),
    [
        ({"needed": ""}, "needed", "must be given"),
        ({"days": "91"}, "days", "at most 90"),
        ({"days": "many"}, "days", "Enter a whole number."),
        ({"share": "1e999"}, "share", "Enter a number."),
        ({"share": "9" * 5_000}, "share", "Enter a number."),
        ({"region": '"mars"'}, "region", "Select a valid choice."),
        ({"name": "ABC"}, "name", "should match pattern"),
        ({"day": "2026-02-31"}, "day", "valid date"),
        ({"tags": "[1,"}, "tags", "This is not JSON"),
        ({"tags": '["a", 5]'}, "tags", "1: must be a text"),
        ({"part": '{"deep": "x"}'}, "part", "deep: must be a whole number"),
        ({"needed": "forbidden"}, "", "forbidden is forbidden"),
        ({"needed": "\x00"}, "needed", "Null characters are not allowed."),
    ],
)
def test_an_error_is_shown_at_its_input(handler: Handler, written: dict[str, str], name: str, sentence: str) -> None:
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
    # The refused form still shows the text that the user typed into the input.
    typed = next(iter(written.values()))
    assert form.inputs is not None
    shown = str(form.inputs[next(iter(written))].value())
    assert shown == typed or json.loads(shown) == json.loads(typed)


def test_a_required_param_may_come_from_the_target(handler: Handler) -> None:
    shown = ParamsForm(handler, {}, inherited={"needed": "from the target"})
    assert 'class="required"' not in str(shown)
    form = ParamsForm(handler, {}, inherited={"needed": "from the target"}, data=posted(shown))
    assert form.is_valid()
    assert form.params == {}


def test_secrets_are_hidden_and_kept(handler: Handler) -> None:
    stored = {"needed": "x", "token": "s3cret"}
    shown = ParamsForm(handler, stored, inherited={"token": "0ther"})
    for form in (shown, ParamsForm(handler, stored, data=posted(shown)), ParamsForm(handler, stored, data={})):
        assert "s3cret" not in str(form)
        assert "0ther" not in str(form)
        assert "••••••" in str(form)
    kept = ParamsForm(handler, stored, data={"params": '{"needed": "y", "token": "••••••"}'})
    assert kept.is_valid()
    assert kept.params == {"needed": "y", "token": "s3cret"}


class Plain(BaseModel):
    """A params model in which the field `token` is not a secret."""

    token: str = ""


class Other(BaseModel):
    """A params model in which the field `token` is a secret."""

    token: SecretStr = SecretStr("")


@pytest.mark.parametrize("model", [Plain, Other])
def test_a_secret_is_not_copied_to_another_target(
    handler: Handler, monkeypatch: pytest.MonkeyPatch, model: type[BaseModel]
) -> None:
    other = register(monkeypatch, "other", model)
    stored = {"needed": "x", "token": "s3cret"}
    # Without JavaScript, the form still has the old target's inputs when a user saves a new target.
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
    assert 'name="params.field.needed" value="typed"' in str(form)


def test_the_box_is_folded_and_holds_what_the_inputs_show(handler: Handler) -> None:
    stored = {"needed": "x", "days": 7}
    html = str(ParamsForm(handler, stored))
    assert '<details class="sch-params-json"><summary>As JSON</summary>' in html
    text = "{\n  &quot;needed&quot;: &quot;x&quot;,\n  &quot;days&quot;: 7\n}"
    assert re.search(rf'<textarea name="params"[^>]*>\s*{re.escape(text)}</textarea>', html)
    assert f'<input type="hidden" name="params.was" value="{text}"' in html


def test_an_edited_box_is_saved_instead_of_the_inputs(handler: Handler) -> None:
    stored = {"needed": "x", "days": 7}
    data = posted(ParamsForm(handler, stored)) | {"params": '{"needed": "boxed"}'}
    form = ParamsForm(handler, stored, data=data)
    assert form.is_valid(), form.errors
    assert form.params == {"needed": "boxed"}


@pytest.mark.parametrize("text", ["", "  ", '{"days":7,  "needed":"x"}'])
def test_an_empty_or_equal_box_does_not_count_as_edited(handler: Handler, text: str) -> None:
    stored = {"needed": "x", "days": 7}
    data = posted(ParamsForm(handler, stored), needed="typed") | {"params": text}
    form = ParamsForm(handler, stored, data=data)
    assert form.is_valid(), form.errors
    assert form.params == {"needed": "typed", "days": 7}


def test_editing_both_the_box_and_the_inputs_is_refused(handler: Handler) -> None:
    stored = {"needed": "x", "days": 7, "extra": 1}
    box = '{"needed": "boxed"}'
    form = ParamsForm(handler, stored, data=posted(ParamsForm(handler, stored), needed="typed") | {"params": box})
    assert not form.is_valid()
    assert form.errors[""].startswith("Both the inputs and this text were edited.")
    html = str(form)
    assert "were edited" in html.split("<summary>")[1]
    assert '<details class="sch-params-json" open>' in html
    assert 'name="params.field.needed" value="typed"' in html
    # If the operator posts the form again, the form takes the params from the box. If the operator has emptied the
    # box, the form takes the params from the inputs.
    again = ParamsForm(handler, stored, data=posted(form))
    assert again.is_valid(), again.errors
    assert again.params == {"needed": "boxed"}
    emptied = ParamsForm(handler, stored, data=posted(form) | {"params": ""})
    assert emptied.is_valid(), emptied.errors
    assert emptied.params == {"needed": "typed", "days": 7, "extra": 1}


def test_an_input_that_cannot_be_read_is_refused_before_the_box(handler: Handler) -> None:
    stored = {"needed": "x"}
    data = posted(ParamsForm(handler, stored), days="many") | {"params": '{"needed": "boxed"}'}
    form = ParamsForm(handler, stored, data=data)
    assert not form.is_valid()
    assert form.errors == {"days": "Enter a whole number."}
    assert form.open
    mended = ParamsForm(handler, stored, data=posted(form, days=""))
    assert mended.is_valid(), mended.errors
    assert mended.params == {"needed": "boxed"}


def test_a_box_that_cannot_be_read_stays_as_it_was_typed(handler: Handler) -> None:
    stored = {"needed": "x"}
    shown = posted(ParamsForm(handler, stored), needed="typed")
    broken = ParamsForm(handler, stored, data=shown | {"params": '{"needed": '})
    assert not broken.is_valid()
    assert broken.open
    box = str(broken).split("<summary>")[1]
    assert "{&quot;needed&quot;: " in box
    assert "This is not JSON" in box
    assert 'aria-invalid="true"' in box
    assert 'aria-describedby="id_params_error id_params_helptext"' in box
    # The user has corrected the box. But the user has also edited an input, so the form is refused once more.
    mended = ParamsForm(handler, stored, data=posted(broken) | {"params": '{"needed": "boxed"}'})
    assert not mended.is_valid()
    assert "were edited" in mended.errors[""]


def test_a_refused_box_fills_the_inputs(handler: Handler) -> None:
    stored = {"needed": "x"}
    data = posted(ParamsForm(handler, stored)) | {"params": '{"needed": "boxed", "days": 91}'}
    form = ParamsForm(handler, stored, data=data)
    assert not form.is_valid()
    assert 'name="params.field.days" value="91"' in str(form)
    assert "at most 90" in str(form).split("<summary>")[1]
    for change in ({"params.field.days": "9"}, {"params": '{"needed": "boxed", "days": 9}'}):
        mended = ParamsForm(handler, stored, data=posted(form) | change)
        assert mended.is_valid(), mended.errors
        assert mended.params == {"needed": "boxed", "days": 9}


def test_the_box_may_be_posted_without_the_inputs(handler: Handler) -> None:
    form = ParamsForm(handler, {"needed": "x", "days": 7}, data={"params": '{"needed": "z"}'})
    assert form.is_valid()
    assert form.params == {"needed": "z"}
    assert not ParamsForm(handler, {"needed": "x"}, data={"params": ""}).is_valid()
    for writer in ("worker/gone", "worker", "/"):
        form = ParamsForm(handler, {}, data={"params": '{"needed": "z"}', "params.for": writer})
        assert form.is_valid()


def test_a_refused_form_shows_stored_values_that_are_invalid(handler: Handler) -> None:
    """SQL can store values that the form must refuse, such as a NUL character. The refused form still shows them."""
    stored = {"needed": "x", "extra": "a\x00b"}
    form = ParamsForm(handler, stored, data=posted(ParamsForm(handler, stored), needed="typed"))
    assert not form.is_valid()
    assert "which databases refuse" in form.errors[""]
    assert "extra" in str(form)


@pytest.mark.parametrize(
    "value", [{"days": "7"}, {"days": True}, {"needed": 5}, {"region": "mars"}, {"needed": "a\rb"}]
)
def test_a_value_that_its_input_cannot_hold_is_shown_as_json(handler: Handler, value: dict[str, Any]) -> None:
    form = ParamsForm(handler, {"needed": "x", **value})
    assert form.inputs is None
    assert "so all parameters are shown as JSON" in str(form)
    assert "<details" not in str(form)
    assert "params.for" not in str(form)
    taken = ParamsForm(handler, form.stored, data=posted(form) | {"params": '{"needed": "y"}'})
    assert taken.is_valid()
    assert taken.params == {"needed": "y"}


def test_text_of_several_lines_gets_a_text_area(handler: Handler) -> None:
    stored = {"needed": "one\ntwo\n"}
    shown = ParamsForm(handler, stored)
    assert '<textarea name="params.field.needed"' in str(shown)
    for text, read in (("one\r\ntwo\r\n", "one\ntwo\n"), ("one\r\ntwo", "one\ntwo")):
        form = ParamsForm(handler, stored, data=posted(shown, needed=text))
        assert form.is_valid()
        assert form.params == {"needed": read}


def test_params_that_the_model_does_not_know_are_kept(handler: Handler) -> None:
    stored = {"needed": "x", "extra": {"a": 1}}
    shown = ParamsForm(handler, stored)
    # A param that the model does not know has no input, so the box is open. An earlier version of the code had it.
    assert '<details class="sch-params-json" open>' in str(shown)
    kept = ParamsForm(handler, stored, data=posted(shown, needed="y"))
    assert kept.is_valid()
    assert kept.params == {"needed": "y", "extra": {"a": 1}}
    form = ParamsForm(handler, stored, data=posted(shown) | {"params": '{"needed": "x", "extra": {"a": 2}}'})
    assert form.is_valid()
    assert form.params == {"needed": "x", "extra": {"a": 2}}


def test_a_new_param_that_the_model_does_not_know_is_refused(handler: Handler) -> None:
    box = {"params": '{"needed": "x", "extra": 2, "dyas": 1}'}
    form = ParamsForm(handler, {"needed": "x", "extra": 1}, data=box)
    assert not form.is_valid()
    assert form.errors == {"dyas": "there is no such parameter; did you mean days?"}


def test_unregistered_code_and_models_without_schema_take_json(monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_invalid_stored_params_are_shown_and_can_be_corrected(handler: Handler) -> None:
    form = ParamsForm(handler, ["no", "object"], inherited="nonsense")
    assert form.inputs is None
    assert "&quot;no&quot;" in str(form)
    data = posted(form) | {"params": '{"needed": "x"}'}
    assert ParamsForm(handler, ["no", "object"], data=data).is_valid()
    for spoilt in ("nonsense", None, [1]):
        refused = ParamsForm(handler, ["no", "object"], inherited=spoilt, data=data)
        assert not refused.is_valid()
        assert refused.errors == {"": "The target's own parameters are not a JSON object. Fix them first."}


def test_hostile_text_is_escaped(handler: Handler) -> None:
    hostile = '"><script>alert(1)</script>'
    for form in (
        ParamsForm(handler, {"needed": hostile}),
        ParamsForm(handler, {"needed": "x", hostile: hostile}),
        ParamsForm(handler, {}, inherited={"needed": hostile}),
        ParamsForm(handler, {}, data={"params.for": hostile, "params": hostile, "params.was": hostile}),
    ):
        assert "<script>" not in str(form)


def test_the_form_of_a_handler_without_params_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    form = ParamsForm(registry.find("worker", "tests.noop"), {})
    assert "It takes no parameters." in str(form)
    taken = ParamsForm(registry.find("worker", "tests.noop"), {}, data=posted(form))
    assert taken.is_valid()
    assert taken.params == {}


class Counted(BaseModel):
    """A params model that records each validation."""

    asked: ClassVar[list[int]] = []
    amount: int = Field(1, le=9)

    @model_validator(mode="after")
    def _count(self) -> Counted:
        self.asked.append(self.amount)
        return self


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch, db: None) -> Scheduler:
    """A schedule whose params model records each validation."""
    register(monkeypatch, "tests.counted", Counted)
    row: Scheduler = SchedulerFactory(schedule="0 8 * * *", worker=WorkerFactory(name="tests.counted"))
    Counted.asked.clear()
    return row


def test_saving_a_schedule_validates_its_params_once(editor: Client, counted: Scheduler) -> None:
    address = reverse("admin:scheduling_scheduler_change", args=[counted.pk])
    values = scheduler_values(worker=counted.worker_id, params='{"amount": 5}')
    assert editor.post(address, values).status_code == 302
    assert Counted.asked == [5]
    # The target's primary key is posted with a leading space. The form accepts this key, and must check the params.
    refused = editor.post(address, {**values, "worker": f" {counted.worker_id}", "params": '{"amount": 10}'})
    assert "amount: must be at most 9" in refused.content.decode()
    counted.refresh_from_db()
    assert counted.params == {"amount": 5}


def test_saving_invalid_params_in_code_is_still_refused(counted: Scheduler) -> None:
    counted.params = {"amount": 10}
    with pytest.raises(ValidationError, match="at most 9"):
        counted.save()
    counted.params = {"amount": 3}
    counted.save()
    mark_checked(counted)
    counted.save()
    assert Counted.asked == [3]
    # After `mark_checked`, only the next save skips the check, and only if the params have not changed since the call.
    mark_checked(counted)
    counted.params["amount"] = 10
    for _save in range(2):
        with pytest.raises(ValidationError, match="at most 9"):
            counted.save()


@pytest.mark.parametrize("data", [{"params": '{"amount": 4}'}, {}])
def test_run_now_validates_its_params_once(operator: Client, counted: Scheduler, data: dict[str, str]) -> None:
    operator.post(reverse("admin:scheduling_scheduler_run", args=[counted.pk]), data)
    assert SchedulerExecution.objects.get().params == json.loads(data.get("params", "{}"))
    assert Counted.asked == [4 if data else 1]


def test_each_request_of_edit_and_rerun_validates_once(operator: Client, counted: Scheduler) -> None:
    execution = SchedulerExecutionFactory(scheduler=counted, succeeded=True, params={"amount": 1})
    failed = FailedExecutionFactory(scheduler=counted, params={"amount": 1}, target_name="tests.counted")
    for name, row in (("schedulerexecution_edit_rerun", execution), ("failedexecution_edit", failed)):
        Counted.asked.clear()
        address = reverse(f"admin:scheduling_{name}", args=[row.pk])
        asked = operator.post(address, {"params": '{"amount": 2}', "attempt": row.attempt})
        assert Counted.asked == [2]
        operator.post(address, dict(asked.context["c"].hidden))
        assert Counted.asked == [2, 2]


def test_a_link_from_the_page_of_a_target_opens_with_its_inputs(handler: Handler, editor: Client) -> None:
    add = reverse("admin:scheduling_scheduler_add")
    target = WorkerFactory(name="many")
    assert 'name="params.field.days"' in editor.get(f"{add}?worker={target.pk}").content.decode()
    for query in ("", "?worker=x", f"?worker={10**30}", f"?worker={target.pk}&report=1"):
        assert 'name="params.field.days"' not in editor.get(f"{add}{query}").content.decode()
