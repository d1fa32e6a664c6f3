"""The faults that a form, the HTTP API or a file gets are in the language of the reader."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import pytest
from django.utils import translation

from scheduling.core import events, json_bounds, queues
from scheduling.core.calendar_entries import LONGEST_TEXT, CalendarError, parse_entries
from scheduling.core.celery_crontab import parse_celery
from scheduling.core.celery_days import expressions
from scheduling.core.cron import next_after, parse, resolve_wall, zone
from scheduling.core.json_faults import json_fault
from scheduling.core.retention import RetentionPolicy
from scheduling.core.retry import RetryPolicy
from scheduling.core.schedule_files import MAX_BYTES, MAX_SCHEDULES, FileInvalid, read, write
from scheduling.core.shell_commands import management_command
from scheduling.core.time_spans import parse_time_span
from scheduling.core.timetables import require_whole_minutes
from scheduling.core.words import in_english
from tests.core.brute import utc

EXPRESSIONS = (
    "60 * * * *", "a * * * *", "0 0 * * monday", "0 0 * *", "@nightly", "0 0 31 2 *", "0" * 300, "0 9 * * 1\x00",
    "*,5 * * * *", "0-5-9 * * * *", "0 0 * * 7/2", "0 0 * * fri-mon", "*/90 * * * *", "1, * * * *", "? * * * *",
    "1#2 * * * *", "H * * * *", "0 0 1L * *", "0 0 1 * 1#2", "0 0 * * 1#2,3", "0 0 * * 1#6",
    "@every", "@every 90", "@every 1.5h", "@every 5x", "@every 0m", "@every 9999w", "@every 1w1d", "@every 1d1h",
    "@every 1m1h", "@every 90 m", "@every 90m now", "@every 90m at", "@every 1d at 08:00 at 09:00", "@every 90m on fri",
    "@every 90m at 08:00", "@every 2d on fri", "@every 90m from 2026-01-05", "@every 90m from 2026-01-05T00:00",
    "@every 90m from soon", "@every 90m from 2026-02-30T00:00Z", "@every 90m from 9999-12-31T23:00-05:00",
    "@every 2d from 2026-01-05T00:00", "@every 2d from soon", "@every 2d from 2026-02-30", "@every 2d at 25:00",
    "@every 2w on fri,,mon", "@every 2w on friday",
)  # fmt: skip

ENTRIES = (
    "25.12.2026", "2026-02-30", "1969-12-31", "24:00-06:00", "22:00-22:00", "2026-01-05..2026-01-01", "every 02-30",
    "every 12-24..01-02 09:00-10:00", "mon-wed-fri", "sat 09:00", "2026-12-25 " + "x" * 300, "#" * (LONGEST_TEXT + 1),
)  # fmt: skip

FILES = (
    "[]", "{", '{"a": 1, "a": 2}', '{"schedules": []}', '{"version": 1, "schedules": [], "x": 1}', "a\x00",
    "[" * 200_000, '{"version": 1, "schedules": [1]}', '{"version": 1, "schedules": [{}]}',
    '{"version": 1, "schedules": [{"name": "A"}]}', '{"version": 1, "schedules": [{"name": "a"}, {"name": "a"}]}',
    '{"version": 1, "schedules": [], "calendars": 1}', '{"version": 1, "schedules": [], "calendars": [1]}',
    '{"version": 1, "schedules": [], "calendars": [{"name": "a"}, {"name": "a"}]}', " " * (MAX_BYTES + 1),
    json.dumps({"version": 1, "schedules": [1] * (MAX_SCHEDULES + 1)}),
    json.dumps({"version": 1, "schedules": [{"name": "a", "params": {"a": 2**64}}]}),
)  # fmt: skip

DOCUMENTS = ("&a b", "!!str a", "a\n---\nb", "1: 2", "a: 1\na: 1", "{a: " * 100)

LINES = (
    "", "TOKEN=1 ./manage.py check", './manage.py "check', "./manage.py check | mail", "./manage.py check $A",
    "./manage.py check *", "./manage.py", "rsync a b", *(f"{name} ./manage.py check" for name in (
        "flock", "timeout", "nice", "ionice", "sudo", "su", "env", "chronic", "uv run", "nohup",
    )), "source venv/bin/activate && ./manage.py check",
)  # fmt: skip

CELERY = (
    ("a", "*", "*", "*", "*"), ("", "*", "*", "*", "*"), ("*/0", "*", "*", "*", "*"), ("1/2", "*", "*", "*", "*"),
    ("60", "*", "*", "*", "*"), ("0", "8", "31", "2", "*"), ("0", "8", "13", "*", "5"),
)  # fmt: skip

BROKEN = (
    "[1,", "{a: 1}", '{"a" 1}', "[1 2]", "1 2", '"a', '"a\nb"', '"\\x"', '"\\u12"', "[1,]", '{"a": 1,}',
)  # fmt: skip

VALUES = (float("nan"), 2**64, "\x00", ["x" * json_bounds.MAX_CHARS])

POLICIES: tuple[dict[str, Any], ...] = (
    {"max_retries": 20}, {"delay_ms": 1}, {"multiplier": 99.0}, {"max_delay_ms": 1},
    {"delay_ms": 5_000, "max_delay_ms": 1_000},
)  # fmt: skip


def _deep() -> Any:
    found: Any = 1
    for _level in range(json_bounds.MAX_DEPTH + 2):
        found = [found]
    return found


def _seconds() -> None:
    require_whole_minutes(parse("@every 10s"))


FAULTS: dict[str, Callable[[], object]] = {
    **{f"expression {one[:40]!r}": lambda one=one: parse(one) for one in EXPRESSIONS},
    "an expression that never fires": lambda: next_after(parse("@every 2d from 2099-01-01"), "UTC", utc("2026-01-01")),
    "seconds": _seconds,
    **{f"entry {one[:40]!r}": lambda one=one: parse_entries(one) for one in ENTRIES},
    "too many entries": lambda: parse_entries("sat\nsun", most=1),
    **{f"zone {one[:20]!r}": lambda one=one: zone(one) for one in ("Europe/Madird", "CEST", "x" * 100)},
    "a local time outside of the calendar": lambda: resolve_wall(utc("0001-01-01").replace(tzinfo=None), "Asia/Tokyo"),
    **{f"policy {one}": lambda one=one: RetryPolicy(**one) for one in POLICIES},
    "retention": lambda: RetentionPolicy().with_own({"success_days": 0}),
    **{f"time span {one!r}": lambda one=one: parse_time_span(one) for one in ("", "5", "5x", "5m" * 40)},
    **{f"queue {one!r}": lambda one=one: queues.queue_problem(one) for one in ("A", "standalone", "default", "amq")},
    "priority": lambda: queues.priority_problem("urgent"),
    "a priority of a queue that has none": lambda: queues.choice_problem("immediate", "high"),
    **{f"topic {one[:5]!r}": lambda one=one: events.topic_problem(one) for one in ("a b", "a" * 200)},
    **{f"metadata {len(one)}": lambda one=one: events.metadata_problem(one)
       for one in ({1: 2}, {str(n): n for n in range(99)})},
    **{f"JSON {str(one)[:9]!r}": lambda one=one: json_bounds.problem("X", one) for one in (*VALUES, _deep())},
    **{f"file {one[:60]!r}": lambda one=one: read(one.encode(), "json") for one in FILES},
    "a file that is no text": lambda: read(b"\xff", "json"),
    "a file that would be too long": lambda: write([{"name": "a", "params": {"a": "x" * MAX_BYTES}}], "json"),
    **{f"document {one[:9]!r}": lambda one=one: read(one.encode(), "yaml") for one in DOCUMENTS},
    **{f"crontab of Celery {one}": lambda one=one: expressions(parse_celery(*one)) for one in CELERY},
    **{f"line {one!r}": lambda one=one: management_command(one) for one in LINES},
}  # fmt: skip

ENGLISH = {
    "the", "is", "are", "has", "and", "or", "not", "write", "must", "such", "only", "it", "there", "no", "use", "holds",
    "never",
}  # fmt: skip
"""Each English fault has some of these words, and no German one has any."""


def fault_of(one: Callable[[], object]) -> str:
    try:
        return str(one())
    except (ValueError, FileInvalid) as error:
        return str(error)


def words_of(text: str) -> set[str]:
    return set(re.findall(r"\w+", text.lower()))


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_german_for_a_german(name: str) -> None:
    english = fault_of(FAULTS[name])
    with translation.override("de"):
        german = fault_of(FAULTS[name])
        with in_english():
            stored = fault_of(FAULTS[name])
    assert stored == english
    assert ENGLISH & words_of(english)
    assert not ENGLISH & words_of(german)
    assert not re.search(r"\{[a-z]+\}", german)


@pytest.mark.parametrize("text", BROKEN)
def test_what_is_wrong_with_json_is_german_for_a_german(text: str) -> None:
    with pytest.raises(json.JSONDecodeError) as broken:
        json.loads(text)
    english = json_fault(broken.value)
    with translation.override("de"):
        german = json_fault(broken.value)
    assert english[0] == english[0].lower()
    assert {"a", "is", "there", "without"} & words_of(english)
    assert not (ENGLISH | {"a", "expecting", "without"}) & words_of(german)


def test_the_parts_of_an_interval_have_german_names() -> None:
    found = [fault_of(lambda one=one: parse(one)) for one in ("@every 2d at 25:00", "@every 2w on friday")]
    assert [text.partition(":")[0] for text in found] == ["At", "On"]
    with translation.override("de"):
        found = [fault_of(lambda one=one: parse(one)) for one in ("@every 2d at 25:00", "@every 2w on friday")]
    assert [text.partition(":")[0] for text in found] == ["Uhrzeit (at)", "Wochentage (on)"]


def test_large_numbers_are_written_as_the_language_writes_them() -> None:
    text = "#" * (LONGEST_TEXT + 1)
    assert "at most 2,000,000 characters" in fault_of(lambda: parse_entries(text))
    with translation.override("de"):
        assert "höchstens 2.000.000 Zeichen" in fault_of(lambda: parse_entries(text))


def test_the_text_of_a_user_is_no_template() -> None:
    with translation.override("de"), pytest.raises(CalendarError, match=re.escape("„{0} {x} %s“ ist kein Eintrag")):
        parse_entries("{0} {x} %s")
