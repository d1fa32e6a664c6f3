"""Tests of parts that several pages share: state chips, times, text, the JSON field and the table of a params model."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any, Literal

import pytest
from django.core.exceptions import ValidationError
from django.forms import Form
from pydantic import BaseModel, Field, SecretStr

from scheduling.admin.params.json_field import SHOWN_DEPTH, PrettyJSONField, json_block, pretty
from scheduling.admin.params.model import default_problems, params_table
from scheduling.admin.ui.badges import OUTCOMES, STATES, outcome_badge, registered_badge, state_badge
from scheduling.admin.ui.text import first_line
from scheduling.admin.ui.times import duration_between, format_duration, relative_time, time_tag
from scheduling.core.lifecycle import State
from scheduling.core.text import visible_text
from scheduling.handlers import Handler, find
from scheduling.handlers.secret_params import masked
from scheduling.models import Attempt
from scheduling.models.labels import STATES as LABELS

NOW = datetime(2026, 3, 10, 12, 0, tzinfo=UTC)


def test_each_state_and_outcome_has_a_chip() -> None:
    assert set(STATES) == set(LABELS) == set(State)
    assert set(OUTCOMES) == set(Attempt.Outcome)
    for state in State:
        html = state_badge(state.value)
        assert "<svg" in html
        assert f"sch-{STATES[state][1]}" in html
        assert str(LABELS[state]) in html
    for outcome in Attempt.Outcome:
        assert str(outcome.label) in outcome_badge(outcome)


def test_unknown_state_is_shown_as_text() -> None:
    assert "&lt;b&gt;new" in state_badge("<b>new")
    assert "melted" in outcome_badge("melted")


def test_a_title_is_escaped() -> None:
    assert 'title="&quot;&gt;&lt;script&gt;"' in state_badge("failed", '"><script>')


def test_the_chip_says_whether_the_code_is_registered() -> None:
    assert "sch-good" in registered_badge("worker", "tests.noop")
    assert "sch-bad" in registered_badge("worker", "tests.absent")
    assert "Deploy the code" in registered_badge("worker", "tests.absent")


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-1, "0 s"),
        (0, "0 s"),
        (0.0001, "1 ms"),
        (0.0044, "4 ms"),
        (0.42, "420 ms"),
        (0.9999, "1 s"),
        (9.5, "9.5 s"),
        (12.4, "12 s"),
        (60, "1 min"),
        (125, "2 min 5 s"),
        (3600, "1 h"),
        (12_000, "3 h 20 min"),
        (172_800, "2 d"),
        (367_200, "4 d 6 h"),
    ],
)
def test_durations(seconds: float, text: str) -> None:
    assert format_duration(seconds) == text


@pytest.mark.parametrize(
    ("delta", "text"),
    [
        (timedelta(0), "now"),
        (timedelta(seconds=5), "in 5 s"),
        (timedelta(seconds=-95), "1 min 35 s ago"),
        (timedelta(minutes=-5, seconds=-8), "5 min ago"),
        (timedelta(hours=3, minutes=20, seconds=59), "in 3 h 20 min"),
        (timedelta(days=20, hours=5), "in 20 d"),
    ],
)
def test_relative_times(delta: timedelta, text: str) -> None:
    assert relative_time(NOW + delta, NOW) == text


def test_a_time_is_shown_in_its_zone_with_utc_in_the_markup() -> None:
    from zoneinfo import ZoneInfo

    html = time_tag(NOW, ZoneInfo("Europe/Madrid"))
    assert "2026-03-10 13:00:00 CET" in html
    assert 'datetime="2026-03-10T12:00:00Z"' in html
    assert time_tag(None) == "-"
    assert duration_between(None, NOW) == "-"
    assert duration_between(NOW, NOW + timedelta(seconds=3)) == "3 s"


@pytest.mark.parametrize(
    ("text", "visible"),
    [
        ("plain\ttext\nwith lines", "plain\ttext\nwith lines"),
        ("\x1b[31mred", "\\x1b[31mred"),
        ("nul\x00", "nul\\x00"),
        ("a\u202eb", "a\\u202eb"),
        ("zero\u200bwidth", "zero\\u200bwidth"),
        ("\ud800 half", "? half"),
        ("日本語 ñ 😀", "日本語 ñ 😀"),
    ],
)
def test_invisible_characters_become_visible(text: str, visible: str) -> None:
    assert visible_text(text) == visible


def test_long_text_is_cut() -> None:
    assert visible_text("x" * 50, 10) == "x" * 9 + "…"
    assert first_line("\n\n  first \nsecond") == "first"
    assert first_line("") == ""
    assert len(first_line("y" * 1_000_000)) == 160


def test_deeply_nested_json_is_not_an_error() -> None:
    deep: Any = 1
    for _ in range(SHOWN_DEPTH):
        deep = {"a": deep}
    assert pretty(deep).count("\n") == 2 * SHOWN_DEPTH
    assert "too deeply" in pretty({"a": deep})
    for _ in range(5_000):
        deep = [deep, 2]
    assert "too deeply" in pretty(deep)
    assert pretty({"a": "\ud800é"}) == '{\n  "a": "\\ud800é"\n}'
    assert "&lt;script&gt;" in json_block({"a": "<script>"})


# --- the JSON field -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", {}),
        ("  ", {}),
        ("{}", {}),
        ('{"a": 1, "b": [true, null, 1.5]}', {"a": 1, "b": [True, None, 1.5]}),
        ('{"a": "\\\\u0000 is text"}', {"a": "\\u0000 is text"}),
    ],
)
def test_json_is_read(text: str, value: dict) -> None:
    assert PrettyJSONField().clean(text) == value


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ('{"a": 1,\n "b": }', "at line 2, column 7, near “"),
        ('{"a": 1', "at line 1, column 8"),
        ("{a: 1}", "at line 1, column 2"),
        ("[1, 2]", "Write a JSON object"),
        ("12", "Write a JSON object"),
        ('{"a": 1, "a": 2}', "“a” is given twice"),
        ('{"a": NaN}', "no number NaN"),
        ('{"a": 1e999}', "no number inf"),
        ('{"a": "\\u0000"}', "which databases refuse"),
        ('{"\\ud800": 1}', "which databases refuse"),
        ("[" * 100_000, "nested too deeply"),
        ('{"a":' * 60 + "1" + "}" * 60, "nested too deeply"),
        ('{"a": ' + "9" * 5_000 + "}", "too many digits"),
        ("x" * 1_000_001, "1000001 characters"),
    ],
)
def test_wrong_json_is_refused_with_the_reason(text: str, sentence: str) -> None:
    with pytest.raises(ValidationError) as caught:
        PrettyJSONField().clean(text)
    assert sentence in " ".join(caught.value.messages)


def test_the_field_indents_json_and_keeps_wrong_input() -> None:
    class Page(Form):
        params = PrettyJSONField()

    assert "{\n  &quot;a&quot;: &quot;é&quot;\n}" in Page(initial={"params": {"a": "é"}}).as_p()
    wrong = Page({"params": "{<script>"})
    assert not wrong.is_valid()
    assert "{&lt;script&gt;" in wrong.as_p()
    assert "<script>" not in wrong.as_p()


def test_only_a_changed_value_counts_as_a_change() -> None:
    field = PrettyJSONField()
    assert not field.has_changed({"a": 1, "b": 2}, '{ "b":2,  "a":1}')
    assert field.has_changed({"a": 1}, '{"a": true}')
    assert field.has_changed({"a": 1}, "{")


# --- the params model ----------------------------------------------------------------------------


class Inner(BaseModel):
    """A nested model."""

    deep: int = 1


class Everything(BaseModel):
    """A params model with fields of many kinds."""

    region: Literal["eu", "us"] = "eu"
    days: int = Field(1, ge=1, le=90, description="How far <back>.")
    names: list[str] = []
    limits: dict[str, int] | None = None
    secret: SecretStr = SecretStr("hunter2")
    inner: Inner = Inner()
    needed: str
    renamed: int = Field(3, alias="other-name")
    made: list[int] = Field(default_factory=list)


def _handler(model: type[BaseModel]) -> Handler:
    return Handler(type="worker", name="x", call=lambda params, run: None, params=model)


def test_the_table_of_a_model() -> None:
    html = params_table(Everything)
    for text in (
        "one of &quot;eu&quot;, &quot;us&quot;",
        "whole number, 1 to 90",
        "How far &lt;back&gt;.",
        "list of text",
        "object of whole number or null",
        "<em>required</em>",
        "other-name",
        "<em>a new value each time</em>",
        "{&quot;deep&quot;: 1}",
    ):
        assert text in html, text
    assert "hunter2" not in html
    assert "takes no parameters" in params_table(find("worker", "tests.noop").params)


def test_secrets_are_masked_by_their_type() -> None:
    handler = _handler(Everything)
    assert masked(handler, {"secret": "s3cret", "days": 2}) == {"secret": "••••••", "days": 2}
    assert masked(None, {"secret": "x"}) == {"secret": "x"}
    assert masked(handler, "no object") == "no object"


def test_defaults_may_omit_required_params_but_must_be_valid() -> None:
    handler = _handler(Everything)
    assert default_problems(handler, {}) == []
    assert default_problems(handler, {"needed": "x"}) == []
    (problem,) = default_problems(handler, {"days": 0})
    assert problem.startswith("days: ")
    (problem,) = default_problems(handler, {"needed": 5})
    assert problem.startswith("needed: ")
