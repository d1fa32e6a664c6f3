"""Tests of reading the header `x-death`. Any client may send any value in this header."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from scheduling.core.deaths import (
    MOST_DEATHS,
    MOST_KEYS,
    TEXT_LENGTH,
    Death,
    deaths_as_text,
    deaths_from_text,
    read_deaths,
)
from scheduling.core.json_bounds import problem

ENTRY: dict[str, Any] = {
    "count": 2, "reason": "rejected", "queue": "cron_scheduler", "time": "2025-12-12T12:01:33.000Z",
    "exchange": "cron_dlx", "routing-keys": ["retry"], "original-expiration": None,
}  # fmt: skip
"""The example of the original contract."""

AT = datetime(2025, 12, 12, 12, 1, 33, tzinfo=UTC)


def test_the_example_of_the_original_is_read() -> None:
    assert read_deaths([ENTRY]) == (Death("cron_scheduler", "rejected", 2, "cron_dlx", ("retry",), AT),)


@pytest.mark.parametrize("value", [None, "x", b"x", 1, {}, ENTRY, (), [], [[]], [None, 1, "x", b"x", [ENTRY], {}]])
def test_a_value_that_is_no_list_of_entries_has_no_deaths(value: object) -> None:
    assert read_deaths(value) == ()


@pytest.mark.parametrize("missing", ["queue", "reason"])
@pytest.mark.parametrize("value", [None, "", 1, [], {}])
def test_an_entry_without_queue_or_reason_is_left_out(missing: str, value: object) -> None:
    assert read_deaths([{**ENTRY, missing: value}, ENTRY]) == read_deaths([ENTRY])


@pytest.mark.parametrize("count", [None, True, 0, -1, 10**12 + 1, 2**200, 1.5, float("nan"), "2", b"2", [], {}])
def test_a_count_that_cannot_be_used_is_left_out(count: object) -> None:
    assert read_deaths([{**ENTRY, "count": count}])[0].count is None


@pytest.mark.parametrize(
    ("time", "expected"),
    [
        (AT, AT),
        (AT.replace(tzinfo=None), AT),
        (AT.astimezone(timezone(timedelta(hours=14))), AT),
        (int(AT.timestamp()), AT),
        *[(value, None) for value in (
            None, True, -1, 2**62, 2**200, 1.5, "", "yesterday", "9" * 5000, b"2025", [], {},
            datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=14))), datetime.max, "9999-12-31T23:59:59-14:00",
            "1969-12-31T23:59:59Z", "2025-13-01",
        )],
    ],
)  # fmt: skip
def test_a_time_out_of_range_is_left_out(time: object, expected: datetime | None) -> None:
    assert read_deaths([{**ENTRY, "time": time}])[0].at == expected


@pytest.mark.parametrize("keys", [None, "x", 1, {}, [None, 1, [], {}, ""]])
def test_routing_keys_that_are_no_texts_are_left_out(keys: object) -> None:
    assert read_deaths([{**ENTRY, "routing-keys": keys}])[0].routing_keys == ()


def test_deaths_are_bounded() -> None:
    huge = {**ENTRY, "queue": "é" * 10**5, "exchange": b"\xff" * 10**5, "routing-keys": ["k" * 10**5] * 100}
    found = read_deaths([None, *[huge] * 10**5])
    assert len(found) == MOST_DEATHS
    assert {len(found[0].queue), *(len(key) for key in found[0].routing_keys)} == {TEXT_LENGTH}
    assert len(found[0].routing_keys) == MOST_KEYS
    assert len(json.dumps([death.entry() for death in found])) < 200_000


@pytest.mark.parametrize("text", ["a\x00b", "\ud800", b"\xff\x00", "\x1b[31m", "\u202e"])
def test_every_database_can_store_the_deaths(text: object) -> None:
    found = read_deaths([{**ENTRY, "queue": text, "reason": text, "exchange": text, "routing-keys": [text]}])
    assert len(found) == 1
    assert problem("It", [death.entry() for death in found]) == ""


def test_stored_entries_are_read_as_the_same_deaths() -> None:
    found = read_deaths([ENTRY, {"queue": "q", "reason": "expired"}])
    assert read_deaths(json.loads(json.dumps([death.entry() for death in found]))) == found


def test_deaths_as_text_keep_the_newest() -> None:
    found = read_deaths([{**ENTRY, "queue": f"q{number}"} for number in range(MOST_DEATHS)])
    text = deaths_as_text(found, 2_000)
    assert 1_000 < len(text.encode()) <= 2_000
    kept = deaths_from_text(text)
    assert kept == found[: len(kept)]
    assert deaths_as_text(found, 10) == deaths_as_text((), 2_000) == ""


@pytest.mark.parametrize("text", [None, 1, b"[]", "", "x", "{}", "[" * 100_000, "9" * 5000])
def test_a_text_that_names_no_deaths_has_none(text: object) -> None:
    assert deaths_from_text(text) == ()
