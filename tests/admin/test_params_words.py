"""A list of texts is written with one text in each line, such as the arguments of a management command."""

from __future__ import annotations

from typing import Any

import pytest
from django.utils.html import escape
from pydantic import BaseModel, SecretStr

from scheduling.admin.params.form import ParamsForm
from scheduling.admin.params.schema import slots
from scheduling.handlers import find
from scheduling.handlers.registry import Handler

FIELD = "params.field.args"


def form(stored: dict[str, Any], **posted: str) -> ParamsForm:
    handler = find("worker", "run_command")
    shown = ParamsForm(handler, stored)
    data = {"params.for": "worker/run_command", "params.was": shown.base, "params.field.command": '"check"'}
    return ParamsForm(handler, stored, data={**data, **posted})


@pytest.mark.parametrize(
    ("text", "args"),
    [
        ("--deploy\r\n--tag\r\nmodels", ["--deploy", "--tag", "models"]),
        ("\n--tag\n\n  \nmodels\n", ["--tag", "models"]),
        ('["--tag", "models"]', ["--tag", "models"]),  # JSON is still understood
        ("--tag=models", ["--tag=models"]),
    ],
)
def test_each_line_is_an_argument(text: str, args: list[str]) -> None:
    found = form({"command": "check"}, **{FIELD: text})
    assert found.is_valid(), found.errors
    assert found.params == {"command": "check", "args": args}


def test_a_wrong_argument_is_told_at_its_input() -> None:
    found = form({"command": "check"}, **{FIELD: "--settings=evil"})
    assert not found.is_valid()
    assert "cannot say where code is read from" in found.errors["args"]


@pytest.mark.parametrize("args", [["--tag", "models"], ["two words"], []])
def test_what_is_stored_is_shown_in_lines_and_kept(args: list[str]) -> None:
    stored = {"command": "check", "args": args}
    html = str(ParamsForm(find("worker", "run_command"), stored))
    assert escape("\n".join(args)) in html
    assert "one in each line" in html
    found = form(stored, **{FIELD: "\r\n".join(args)})
    assert found.is_valid()
    assert found.params == stored


@pytest.mark.parametrize("args", [["a\nb"], ["[x"], ["", "x"], "text", [1]])
def test_what_lines_cannot_show_stays_json(args: Any) -> None:
    found = slots(find("worker", "run_command"))
    assert found is not None
    slot = next(slot for slot in found if slot.name == "args")
    assert slot.kind == "words"
    assert slot.suited(args).kind == "json"


def test_other_lists_stay_json() -> None:
    class Lists(BaseModel):
        numbers: list[int] = []
        secrets: list[SecretStr] = []
        pair: tuple[str, str] = ("a", "b")
        names: list[str] | None = None

    found = slots(Handler("worker", "lists", lambda params, run: None, params=Lists))
    assert found is not None
    assert {slot.name: slot.kind for slot in found} == {
        "numbers": "json",
        "secrets": "json",
        "pair": "json",
        "names": "words",
    }
