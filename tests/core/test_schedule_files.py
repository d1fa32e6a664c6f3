"""The format of schedule files: what is written can be read, and hostile text is refused with a sentence."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from typing import Any

import pytest

from scheduling.core.schedule_files import (
    MAX_BYTES,
    MAX_PROBLEMS,
    MAX_SCHEDULES,
    FileInvalid,
    Format,
    is_source,
    nameless,
    nameless_key,
    read,
    write,
)
from tests.hostile.fuzz import choose_seed

TEXTS = [
    "*/5 * * * *",
    "on",
    "null",
    "010",
    "1e3",
    "1.5",
    "2026-01-01",
    "",
    " x ",
    "a: b",
    "#",
    "ü\u202e\x85",
    "a\nb",
    "é",
]
BOMB = "a: &a [x, x]\nb: &b [*a, *a]\nversion: 1\nschedules: []\n"


@pytest.mark.parametrize("format_", ["json", "yaml"])
def test_what_is_written_can_be_read(format_: Format) -> None:
    params = {text: [text, {"z": 1.5, "a": [True, None, -3, 0.5]}] for text in TEXTS}
    entries: list[dict[str, Any]] = [{"name": "b", "params": params}, {"name": "a", "status": False, "time_limit": 0}]
    text = write(entries, format_)
    assert read(text.encode(), format_) == [entries[1], entries[0]]
    assert "\u202e" not in text
    assert "\x85" not in text
    shuffled = {"name": "b", "params": dict(reversed(params.items()))}
    assert write([entries[1], shuffled], format_) == text  # the text depends on the values only
    assert "é" in write([{"name": "a", "description": "é"}], format_)


def test_names() -> None:
    assert [nameless_key(name) for name in (nameless(7), "schedule-0", "schedule-x", "schedule-" + "9" * 19)] == [
        7, None, None, None,
    ]  # fmt: skip
    assert [is_source(text) for text in ("ops/jobs.yaml", "", "a b", "ü", "x" * 201, "a\n")] == [True] + [False] * 5


def entry(**values: Any) -> str:
    return json.dumps({"version": 1, "schedules": [{"name": "a", **values}]})


DEEP: Any = 1
for _ in range(31):
    DEEP = [DEEP]


@pytest.mark.parametrize(
    ("text", "format_", "words"),
    [
        ("x" * 10_000_000, "yaml", "longer than 1,000,000 bytes"),
        (" " * (MAX_BYTES + 1), "json", "longer than 1,000,000 bytes"),
        ("[" * 10_000, "json", "nested too deep"),
        ("[" * 10_000, "yaml", "Line 1: "),
        ("[" * 100, "yaml", "nested deeper"),
        ('{"a":' * 100 + "1" + "}" * 100, "json", "is not an object such as"),
        ("{a: " * 100, "yaml", "nested deeper"),
        ("a\x00b", "json", "Line 1: the file holds a NUL"),
        ("a\n\x00b", "yaml", "Line 2: the file holds a NUL"),
        (BOMB, "yaml", "Line 1: aliases and anchors"),
        ("version: 1\nschedules:\n- schedule: */5 * * * *\n", "yaml", "Line 3: aliases and anchors .*quotation marks"),
        ("version: 1\nschedules:\n- schedule: * * * * *\n", "yaml", "Line 3: aliases and anchors .*quotation marks"),
        ("!!python/object/apply:os.system ['true']", "yaml", "tags are not allowed"),
        ("!!str a", "yaml", "tags are not allowed"),
        ("version: 1\nversion: 1\n", "yaml", "Line 2: the key 'version' stands there twice"),
        ("<<: {version: 1}\nschedules: []\n", "yaml", "no “version”"),
        ("1: 2", "yaml", "Line 1: a key is not a text"),
        ("a: b: c", "yaml", "Line 1: mapping values"),
        ("version: 1\nschedules: []\n---\n{}", "yaml", "second document"),
        ("", "yaml", "is not an object"),
        ("", "json", "Line 1: the file is not JSON"),
        ("{\n\n'a'", "json", "Line 3: the file is not JSON"),
        ('{"version": 1, "version": 1}', "json", "“version” stands twice"),
        ('{"version": ' + "9" * 5_000 + "}", "json", "not JSON"),
        ("[]", "json", "is not an object"),
        ('{"schedules": []}', "json", "no “version”: 1"),
        ('{"version": true, "schedules": []}', "json", "no “version”: 1"),
        ('{"version": 2, "schedules": []}', "json", "no “version”: 1"),
        ('{"version": 1, "schedules": [], "x\u202e": 1}', "json", r"unknown keys: x\\u202e"),
        ('{"version": 1, "schedules": [1]}', "json", "Schedule 1: it is not an object"),
        ('{"version": 1, "schedules": [{}]}', "json", "Schedule 1: it has no “name”"),
        ('{"version": 1, "schedules": [{"name": "a"}, {"name": "a"}]}', "json", "Schedule 2: the name “a” stands"),
        (entry(name="Nightly"), "json", "“Nightly” is no name"),
        (entry(name="@worker:tests.noop"), "json", "is no name"),
        (entry(name=7), "json", "“7” is no name"),
        (entry(params={"a": DEEP}), "json", "“a” is nested deeper than 30"),
        (entry(params={"a": float("nan")}), "json", "“a” holds NaN"),
        (entry(params={"a": 2**64}), "json", "“a” holds a whole number beyond"),
        (entry(description="\ud800"), "json", "“a” holds NUL or half a character"),
        (json.dumps({"version": 1, "schedules": [1] * (MAX_SCHEDULES + 1)}), "json", "at most 10,000 schedules"),
        (json.dumps({"version": 1, "schedules": [1] * 200}), "json", "And 100 more problems"),
    ],
    ids=lambda value: ascii(value[:20]),
)  # fmt: skip
def test_what_cannot_be_used_is_refused_with_a_sentence(text: str, format_: Format, words: str) -> None:
    with pytest.raises(FileInvalid, match=words) as found:
        read(text.encode(), format_)
    assert len(found.value.problems) <= MAX_PROBLEMS + 1
    assert all(len(problem) < 600 for problem in found.value.problems)


def test_bytes_that_are_no_text_are_refused() -> None:
    with pytest.raises(FileInvalid, match="Line 2: the file is not UTF-8"):
        read(b"{\n\xff", "json")
    assert read(b"\xef\xbb\xbf" + b'{"version": 1, "schedules": []}', "json") == []  # Windows marks its files so


def test_what_would_be_too_long_is_not_written() -> None:
    with pytest.raises(FileInvalid, match="longer than"):
        write([{"name": "a", "params": {"a": "x" * MAX_BYTES}}], "json")
    with pytest.raises(FileInvalid, match="at most 10,000"):
        write([{"name": "a"}] * (MAX_SCHEDULES + 1), "json")


def crafted(seed: int, count: int) -> Iterator[tuple[str, Format]]:
    """Files that one or more random edits have spoiled."""
    rng = random.Random(seed)
    whole: list[dict[str, Any]] = [{"name": "a", "schedule": "*/5 * * * *", "params": {"k": [1, "x"]}}, {"name": "b"}]
    bits = [
        "&a ",
        "*a",
        "!!x ",
        "- ",
        ": ",
        "{",
        "}",
        "[",
        "]",
        '"',
        "'",
        "\n",
        "\t",
        "\x00",
        "\ud800",
        "? ",
        "|",
        "%",
        "<<",
    ]
    for _ in range(count):
        format_: Format = rng.choice(["json", "yaml"])
        text = write(whole, format_)
        for _ in range(rng.randint(1, 4)):
            at = rng.randrange(len(text))
            text = text[:at] + rng.choice([*bits, ""]) * rng.choice([1, 1, 60]) + text[at + rng.randint(0, 4) :]
        yield text, format_


def test_spoiled_files_are_read_or_refused_with_a_sentence() -> None:
    seed = int(choose_seed())
    for text, format_ in crafted(seed, 300):
        try:
            found = read(text.encode("utf-8", "surrogatepass"), format_)
        except FileInvalid as error:
            assert str(error), (seed, text)  # noqa: PT017
        else:
            assert all(isinstance(one["name"], str) for one in found), (seed, text)
