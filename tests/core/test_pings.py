"""The rules of pings, and what Sentry is told about a schedule."""

from __future__ import annotations

import uuid
from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from cronsim import CronSim
from hypothesis import given
from hypothesis import strategies as st

from scheduling.core.cron import parse, upcoming
from scheduling.core.pings import (
    BODY_BYTES,
    Event,
    host_of,
    is_url,
    last_lines,
    ping_url,
    reason_to_drop,
    run_id,
    wait_before,
)
from scheduling.core.sentry_monitors import MOST_MINUTES, longest_minutes, monitor_config, slug
from tests.support import NOON, examples

RID = uuid.UUID("12345678-1234-5678-1234-567812345678")
MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)


@pytest.mark.parametrize(
    ("base", "event", "wanted"),
    [
        ("https://hc-ping.com/abc", Event.START, f"https://hc-ping.com/abc/start?rid={RID}"),
        ("https://hc-ping.com/abc/", Event.SUCCESS, f"https://hc-ping.com/abc?rid={RID}"),
        ("https://hc-ping.com/k/slug?create=1", Event.FAIL, f"https://hc-ping.com/k/slug/fail?create=1&rid={RID}"),
        ("http://u:p@[::1]:8000/x#y", Event.SUCCESS, f"http://u:p@[::1]:8000/x?rid={RID}"),
    ],
)
def test_the_url_of_an_event(base: str, event: Event, wanted: str) -> None:
    assert ping_url(base, event, RID) == wanted


def test_a_heartbeat_has_no_run() -> None:
    assert ping_url("https://hc-ping.com/abc", Event.FAIL) == "https://hc-ping.com/abc/fail"


@pytest.mark.parametrize(
    ("text", "usable"),
    [
        ("https://hc-ping.com/abc", True), ("http://10.0.0.7:8000/x", True), ("ftp://hc-ping.com/abc", False),
        ("https:///abc", False), ("hc-ping.com/abc", False), ("https://hc ping.com", False),
        ("https://hc-ping.com/é", False), ("https://h:port/x", False), ("https://[::1/x", False), ("", False),
        (f"https://hc-ping.com/{'a' * 500}", False), ("https://h/\n", False),
    ],
)  # fmt: skip
def test_which_texts_are_ping_urls(text: str, usable: bool) -> None:
    assert is_url(text) is usable


def test_only_the_host_of_a_url_is_shown() -> None:
    assert host_of("https://user:secret@hc-ping.com:8443/token?x=1") == "hc-ping.com:8443"


def test_a_run_keeps_its_id_and_shares_it_with_no_other() -> None:
    ids = {run_id(1, "cron-1", 1), run_id(2, "cron-1", 1), run_id(1, "cron-2", 1), run_id(1, "cron-1", 5)}
    assert len(ids) == 4
    assert run_id(1, "cron-1", 1) == run_id(1, "cron-1", 1) == run_id(1, "cron-1", 0)


@pytest.mark.parametrize(
    ("event", "age", "followed", "dropped"),
    [
        (Event.START, 9 * MINUTE, False, False), (Event.START, 10 * MINUTE, False, True),
        (Event.START, MINUTE, True, True), (Event.FAIL, 23 * HOUR, False, False),
        (Event.SUCCESS, 24 * HOUR, False, True), (Event.FAIL, 59 * MINUTE, True, False),
        (Event.SUCCESS, HOUR, True, True),
    ],
)  # fmt: skip
def test_when_a_ping_is_given_up(event: Event, age: timedelta, followed: bool, dropped: bool) -> None:
    assert bool(reason_to_drop(event, age, is_followed=followed)) is dropped


def test_the_waits_grow_to_five_minutes() -> None:
    assert [wait_before(tries).total_seconds() for tries in (1, 2, 3, 4, 5, 6, 1_000_000)] == [
        15, 30, 60, 120, 240, 300, 300,
    ]  # fmt: skip


@given(st.text(alphabet="aż🙂\n", max_size=300), st.integers(1, 400))
def test_the_end_of_a_text_is_whole_and_bounded(text: str, most: int) -> None:
    found = last_lines(text, most)
    assert text.endswith(found)
    assert len(found.encode()) <= most
    if "\n" in found and len(text.encode()) > most:
        assert text[: len(text) - len(found)].endswith("\n") or "\n" not in found.strip()


def test_a_long_line_alone_is_cut() -> None:
    assert last_lines("x" * 20_000) == "x" * BODY_BYTES


def test_slugs_of_names() -> None:
    assert slug("nightly-report", "shop.report", 7) == "nightly-report"
    assert slug("", "shop.report", 7) == "shop-report-7"
    assert slug("", "ż" * 300, 7) == "schedule-7"
    for name in ("shop.report", "shop/report", "x" * 100, "42", "..."):
        assert len(slug(name, "", 1)) <= 50
        assert not slug(name, "", 1).isdecimal()
    assert slug("shop.report", "", 1) != slug("shop/report", "", 1)


def test_the_longest_time_of_a_run_has_its_retries() -> None:
    assert longest_minutes(600, []) == 11
    assert longest_minutes(600, [30_000, 60_000]) == 33  # three attempts, both waits, and a minute for the way
    assert longest_minutes(0, [30_000]) == MOST_MINUTES
    assert longest_minutes(10**9, []) == MOST_MINUTES


def test_the_configuration_of_a_monitor() -> None:
    assert monitor_config("@daily", "Europe/Madrid", timedelta(seconds=60), 600, []) == {
        "schedule": {"type": "crontab", "value": "0 0 * * *"},
        "timezone": "Europe/Madrid",
        "checkin_margin": 2,
        "max_runtime": 11,
        "failure_issue_threshold": 1,
        "recovery_threshold": 1,
    }
    assert monitor_config("", "UTC", MINUTE, 0, []) is None
    assert monitor_config("nonsense", "UTC", MINUTE, 0, []) is None


@pytest.mark.parametrize(
    ("expression", "schedule"),
    [
        ("@every 90m", {"type": "interval", "value": 90, "unit": "minute"}),
        ("@every 6h from 2026-01-05T00:10Z", {"type": "interval", "value": 360, "unit": "minute"}),
        ("@every 3d at 08:00", {"type": "interval", "value": 3, "unit": "day"}),
        ("@every 2w on fri at 08:00", {"type": "interval", "value": 2, "unit": "week"}),
        ("@every 1d at 08:30", {"type": "crontab", "value": "30 8 * * *"}),
        ("@every 1w on mon,sun at 08:30", {"type": "crontab", "value": "30 8 * * 1,0"}),
        ("@every 10s", None),
        ("@every 2w on mon,fri at 08:00", None),
    ],
)
def test_sentry_is_told_of_intervals_that_it_knows(expression: str, schedule: dict[str, Any] | None) -> None:
    config = monitor_config(expression, "Europe/Madrid", MINUTE, 0, [])
    assert (config and config["schedule"]) == schedule
    if schedule is not None and schedule["type"] == "crontab":
        ours = upcoming(parse(expression), "Europe/Madrid", NOON, 20)
        assert upcoming(parse(schedule["value"]), "Europe/Madrid", NOON, 20) == ours


@examples(60)
@given(
    st.sampled_from(["@every 90m", "@every 6h", "@every 3d at 02:30", "@every 2w on sun at 02:30"]), st.integers(0, 300)
)  # fmt: skip
def test_an_occurrence_is_never_later_than_sentry_expects(expression: str, day: int) -> None:
    """Sentry expects the next check-in one interval after any check-in, in the local time of the schedule."""
    zone, timetable = ZoneInfo("Europe/Madrid"), parse(expression)
    after = datetime(2026, 1, 1, 0, 7, tzinfo=ZoneInfo("UTC")) + timedelta(days=day)
    config = monitor_config(expression, zone.key, MINUTE, 0, [])
    assert config is not None
    step = timedelta(**{f"{config['schedule']['unit']}s": config["schedule"]["value"]})
    for run in upcoming(timetable, zone.key, after, 3):
        late = run + timedelta(minutes=10)  # it has waited, or an operator has run it once more
        for checked_in in (run, late):
            local = checked_in.astimezone(zone) + step
            expected = checked_in + step if config["schedule"]["unit"] == "minute" else local
            assert upcoming(timetable, zone.key, checked_in, 1)[0] <= expected.astimezone(ZoneInfo("UTC"))


def _field(low: int, high: int, *extra: str) -> st.SearchStrategy[str]:
    number = st.integers(low, high)
    item = st.one_of(
        number.map(str),
        st.tuples(number, number).map(lambda pair: f"{min(pair)}-{max(pair)}"),
        st.tuples(number, number, st.integers(1, 5)).map(lambda three: f"{min(three[:2])}-{max(three[:2])}/{three[2]}"),
    )
    lists = st.lists(item, min_size=1, max_size=3).map(",".join)
    return st.one_of(st.just("*"), st.integers(1, 7).map(lambda step: f"*/{step}"), lists, *map(st.just, extra))


EXPRESSIONS = st.one_of(
    st.tuples(
        _field(0, 59), _field(0, 23), _field(1, 28, "L", "15,L", "1-3,L"), _field(1, 12, "jan", "mar-oct", "JUN,dec"),
        _field(0, 6, "mon", "sat,sun", "7", "mon-fri"),
    ),
    st.tuples(_field(0, 59), _field(0, 23), st.just("*"), _field(1, 12), st.sampled_from(["1#2", "fri#1", "1#1,3#5"])),
).map(" ".join)  # fmt: skip


@examples(150)
@given(EXPRESSIONS, st.sampled_from(["UTC", "Europe/Madrid", "America/New_York", "Asia/Tokyo"]), st.integers(0, 365))
def test_sentry_reads_each_expression_as_we_do(expression: str, zone: str, day: int) -> None:
    """Sentry computes with cronsim when the next check-in is expected, also when the clocks change."""
    value = monitor_config(expression, zone, MINUTE, 0, [])
    assert value is not None
    after = datetime(2026, 1, 1, tzinfo=ZoneInfo(zone)) + timedelta(days=day)
    theirs = CronSim(value["schedule"]["value"], after)
    ours = upcoming(parse(expression), zone, after, 5)
    assert [next(theirs).astimezone(ZoneInfo("UTC")) for _ in range(5)] == ours
