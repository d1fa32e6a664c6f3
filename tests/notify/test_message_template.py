"""A text that an operator writes cannot read files or code, and cannot occupy the process that renders it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from django.utils import timezone, translation
from hypothesis import given
from hypothesis import strategies as st

from scheduling.core.zones import zone
from scheduling.notify import message_template
from scheduling.notify.message_template import FILTERS, TAGS, MessageTemplateError, rendered
from tests.support import examples

NAMES = ["a", "b", "n"]


def test_a_text_with_values_conditions_and_loops() -> None:
    source = (
        "{% if a %}{{ a|upper }}: {% for item in b %}{{ forloop.counter }} {{ item.name }}; {% endfor %}{% endif %}"
    )
    assert rendered(source, {"a": "total", "b": [{"name": "x"}, {"name": "y"}]}) == "TOTAL: 1 x; 2 y; "
    assert rendered("{{ n|floatformat:2 }} {{ nothing }}|", {"n": 2.345}) == "2.35 |"


def test_values_are_escaped_in_html_only() -> None:
    assert rendered("{{ a }}", {"a": "<b>&"}, html=True) == "&lt;b&gt;&amp;"
    assert rendered("{{ a }}", {"a": "<b>&"}) == "<b>&"


def test_dates_follow_the_language_and_the_zone() -> None:
    at = datetime(2026, 3, 10, 23, 30, tzinfo=UTC)
    with translation.override("de"), timezone.override(zone("Europe/Berlin")):
        assert rendered("{{ at|date:'l H:i' }}", {"at": at}) == "Mittwoch 00:30"


@pytest.mark.parametrize(
    "tag",
    ["load i18n", "include 'x'", "extends 'x'", "block x", "debug", "ssi '/etc/passwd'", "url 'admin:index'", "lorem 9",
     "csrf_token", "static 'x'", "translate 'x'", "querystring"],
)  # fmt: skip
def test_tags_that_read_or_reveal_are_unknown(tag: str) -> None:
    with pytest.raises(MessageTemplateError, match="Invalid block tag"):
        rendered(f"{{% {tag} %}}", {})


@pytest.mark.parametrize(
    "name",
    ["center:9", "ljust:9", "rjust:9", "stringformat:'s'", "pprint", "safe", "random", "unordered_list", "json_script",
     "wordwrap:9", "urlize", "linenumbers", "phone2numeric"],
)  # fmt: skip
def test_filters_that_are_costly_or_unsafe_are_unknown(name: str) -> None:
    with pytest.raises(MessageTemplateError, match="Invalid filter"):
        rendered(f"{{{{ a|{name} }}}}", {"a": "x"})


LONG = list(range(300_000))


@pytest.mark.parametrize(
    ("source", "data", "said"),
    [
        ("{% for a in b %}{% for c in b %}{% endfor %}{% endfor %}", {"b": LONG}, "more than 10000 steps"),
        ("{% for a in b %}{% for c in b %}{% endfor %}{% endfor %}", {"b": LONG[:150]}, "more than 10000 steps"),
        ("{% for a in b %}{{ c }}{% endfor %}", {"b": LONG[:100], "c": "x" * 20_000}, "more than 100000 characters"),
        ("{% with a=a|add:a %}" * 200 + "{{ a }}" + "{% endwith %}" * 200, {"a": "x"}, "a value has more than"),
        ("{{ a|floatformat:999999999 }}", {"a": 1}, "number that is too large"),
        ('{{ a|floatformat:"999999999" }}', {"a": 1}, "at most 20 digits"),
        ("{{ a|slice:n }}", {"a": "x", "n": 10**12}, "number that is too large"),
        ("{{ a|date:f }}", {"a": datetime(2026, 1, 1, tzinfo=UTC), "f": "F" * 19_000}, "a value has more than"),
        ("{{ a }}", {"a": "x" * 100_001}, "more than 100000 characters"),
        ("x" * 20_001, {}, "template has more than 20000 characters"),
        ("{% if a %}" * 900 + "{% endif %}" * 900, {"a": 1}, "nested too deeply"),
        ("{{ a.__class__ }}", {"a": 1}, "may not begin with underscores"),
        ("{% for a in b %}", {}, "Unclosed tag"),
        ("{% for a in b %}{% endfor %}", {"b": 7}, "A loop needs a list"),
    ],
)
def test_costly_texts_end_with_a_sentence(source: str, data: dict[str, Any], said: str) -> None:
    with pytest.raises(MessageTemplateError, match=f"(?i){said}"):
        rendered(source, data)


def test_objects_become_text() -> None:
    class Secretive:
        password = "hunter2"

        def __str__(self) -> str:
            return "an object"

    assert rendered("{{ a }} {{ a.password }}", {"a": Secretive()}) == "an object "
    data = {"a": {"b": 1}}
    rendered("{{ a.clear }}", data)
    assert data == {"a": {"b": 1}}  # a template works on a copy


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=50) | st.datetimes(),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=5), inner, max_size=5),
    max_leaves=10,
)
ARGUMENTS = st.sampled_from(["", ":a", ":2", ":-999999999999", ":'x'", ":b", ":999", ":'%s'", ":''"])
FILTERED = st.builds(
    lambda name, used: "{{ " + name + "".join(f"|{filter_}{argument}" for filter_, argument in used) + " }}",
    st.sampled_from(NAMES), st.lists(st.tuples(st.sampled_from(FILTERS), ARGUMENTS), max_size=4),
)  # fmt: skip
WRAPPED = st.sampled_from(
    ["{% for x in a %}BODY{% empty %}-{% endfor %}", "{% if a %}BODY{% else %}BODY{% endif %}",
     "{% with b=a %}BODY{% endwith %}", "{% regroup b by x as n %}BODY", "{% filter upper %}BODY{% endfilter %}",
     "{% widthratio n b 9 %}BODY", "{% cycle a b %}BODY", "{% ifchanged a %}BODY{% endifchanged %}", "BODY"]
)  # fmt: skip
SOURCES = st.recursive(
    FILTERED | st.text(max_size=20) | st.sampled_from([f"{{% {tag} %}}" for tag in (*TAGS, "load x", "include a")]),
    lambda inner: st.builds(lambda around, body: around.replace("BODY", body), WRAPPED, inner),
    max_leaves=8,
)


@pytest.mark.long
@examples(300)
@given(source=SOURCES, data=st.fixed_dictionaries(dict.fromkeys(NAMES, VALUES)), html=st.booleans())
def test_any_text_renders_or_is_refused(source: str, data: dict[str, Any], html: bool) -> None:
    try:
        text = rendered(source, data, html=html)
    except MessageTemplateError as error:
        text = str(error) or "no sentence" * message_template.TEXT_LENGTH
    assert len(text) <= message_template.TEXT_LENGTH
