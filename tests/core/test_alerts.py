"""Which alerts begin, go on and are over."""

from __future__ import annotations

from dataclasses import fields, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from scheduling.alerts.recording import TEXTS
from scheduling.core.alert_rules import KINDS, RuleKind, Threshold
from scheduling.core.alerts import (
    MOST_SUBJECTS,
    SEEN_CHARS,
    Situation,
    Standing,
    as_stored,
    bounded,
    changes,
    open_key,
    tells,
)

NOON = datetime(2026, 11, 25, 12, tzinfo=UTC)
CALM = timedelta(seconds=30)
ONE = Situation("a", "subject", "seen")


def further(number: int, group: int | None) -> Situation:
    return Situation(f"further {group}", "further", str(number), group=group)


def at(seconds: float) -> datetime:
    return NOON + timedelta(seconds=seconds)


def test_an_alert_begins_and_is_recorded_again_after_a_minute_only() -> None:
    assert changes({}, [ONE, ONE], NOON, CALM).begun == [ONE]
    known = Standing(1, None, NOON, ONE)
    assert not changes({"a": known}, [ONE], at(59), CALM)
    assert not changes({"a": known}, [replace(ONE, seen="new")], at(59), CALM)
    assert changes({"a": known}, [ONE], at(60), CALM).seen == [known]
    assert changes({"a": known}, [replace(ONE, seen="new")], at(60), CALM).changed == [
        (known, replace(ONE, seen="new"))
    ]


def test_a_clock_that_was_set_back_or_an_unreadable_row_is_recorded_anew() -> None:
    ahead, unreadable = Standing(1, None, at(3_600), ONE), Standing(1)
    assert changes({"a": ahead}, [ONE], NOON, CALM).seen == [ahead]
    assert changes({"a": unreadable}, [ONE], NOON, CALM).changed == [(unreadable, ONE)]


def test_what_comes_and_goes_is_one_alert() -> None:
    known = Standing(1, None, NOON, ONE)
    assert changes({"a": known}, [], NOON, CALM).gone == [known]
    gone = replace(known, gone_at=NOON)
    assert not changes({"a": gone}, [], at(29), CALM)
    assert changes({"a": gone}, [ONE], at(29), CALM).changed == [(gone, ONE)]
    assert changes({"a": gone}, [], at(30), CALM).over == [gone]
    assert changes({"a": gone}, [], at(-3_600), CALM).over == [gone]
    assert changes({"a": known}, [], NOON, timedelta(0)).over == [known]


def test_very_many_situations_are_counted_by_group_and_those_with_an_alert_come_first() -> None:
    many = [Situation(str(number), "s", "t", group=number % 2 or None) for number in range(10_000)]
    found = bounded(many, {"9999", "9998"}, further)
    assert len(found) == MOST_SUBJECTS + 2
    assert [one.key for one in found[:3]] == ["9998", "9999", "0"]
    rest = 10_000 - MOST_SUBJECTS
    assert [(one.group, one.seen) for one in found[MOST_SUBJECTS:]] == [(None, str(rest // 2)), (1, str(rest // 2))]
    assert bounded(many[:3] * 2, {}, further) == many[:3]


def test_texts_are_stored_in_visible_characters() -> None:
    stored = as_stored(Situation("k\x00", "a\u202eb", "z" * 5_000, "\ud800"))
    assert stored.key == "k\\x00"
    assert stored.subject == "a\\u202eb"
    assert len(stored.seen) == SEEN_CHARS
    assert stored.advice == "?"
    assert as_stored(stored) == stored


def test_the_columns_of_an_alert_are_those_of_a_situation() -> None:
    assert tuple(field.name for field in fields(Situation)) == TEXTS


def test_the_keys_of_two_rules_differ() -> None:
    assert open_key(1, "a") != open_key(2, "a")
    assert len(open_key(1, "\ud800")) == 64


@pytest.mark.parametrize(
    ("severity", "least", "group", "of_channel", "told"),
    [
        ("warning", "info", None, None, True),
        ("info", "warning", None, None, False),
        ("nonsense", "critical", None, None, True),
        ("info", "info", 1, 1, True),
        ("info", "info", 1, 2, False),
        ("info", "info", None, 2, True),
        ("info", "info", 1, None, True),
    ],
)
def test_who_is_told(severity: str, least: str, group: int | None, of_channel: int | None, *, told: bool) -> None:
    assert tells(severity, least, group, of_channel) is told


@pytest.mark.parametrize("kind", RuleKind)
def test_the_default_of_each_threshold_is_within_its_bounds(kind: RuleKind) -> None:
    for bounds in KINDS[kind].bounds.values():
        assert bounds.least <= bounds.default <= bounds.most


def test_the_docs_describe_each_kind_with_its_threshold() -> None:
    text = (Path(__file__).parents[2] / "docs" / "alerts.md").read_text()
    text = text.partition("\n## Kinds of rules\n")[2].partition("\n## ")[0]
    rows = {line.split("`")[1]: line.split("|")[2] for line in text.splitlines() if line.startswith("| `")}
    assert set(rows) == {kind.value for kind in RuleKind}
    for kind in RuleKind:
        for threshold, bounds in KINDS[kind].bounds.items():
            if threshold is Threshold.NUMBER:
                most = f"{bounds.most:,.0f}".replace(",", " ")
                assert f"({bounds.default:g}, {bounds.least:g}-{most})" in rows[kind.value]
