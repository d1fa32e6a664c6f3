"""Which zone data is newer, and to which instant a planned run moves."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduling.core import zones
from scheduling.core.cron import parse, upcoming
from scheduling.core.zone_data import adopts, is_newer, moved_to, offset_at, offsets_of
from tests.support import NOON, examples
from tests.zone_loader import loaded_from

MADRID = "Europe/Madrid"
START = NOON - timedelta(days=1)


@pytest.fixture(autouse=True)
def own_zones() -> Iterator[None]:
    yield
    zones.zone.cache_clear()


@pytest.mark.parametrize(
    ("version", "than", "newer"),
    [
        ("2026b", "2026a", True), ("2026a", "2026b", False), ("2026a", "2026a", False), ("2026a", "2025z", True),
        ("2026za", "2026z", True), ("", "2026a", False), ("2026a", "", True), ("x", "y", False),
        ("2026", "2025a", False),
    ],
)  # fmt: skip
def test_versions_are_compared(version: str, than: str, newer: bool) -> None:
    assert is_newer(version, than) is newer


def test_two_producers_with_different_data_do_not_undo_each_other() -> None:
    known: list[tuple[str, str]] = []
    for version, digest in [("2026a", "A"), ("2026b", "B")] * 5:
        if adopts(version, digest, known):
            known.append((version, digest))
    assert known == [("2026a", "A"), ("2026b", "B")]
    known = []
    for version, digest in [("", "A"), ("", "B"), ("2026a", "C"), ("2026a", "D"), ("", "E")] * 5:
        if adopts(version, digest, known):
            known.append((version, digest))
    assert [digest for _version, digest in known] == ["A", "B", "C", "D"]


@pytest.mark.parametrize("name", ["Europe/Madrid", "America/New_York", "Africa/Casablanca", "Asia/Kolkata", "UTC"])
def test_the_recorded_offsets_are_those_of_the_zone(name: str) -> None:
    info = ZoneInfo(name)
    offsets = offsets_of(info, START)
    for days in range(0, 3_650, 7):
        instant = START + timedelta(days=days, hours=days % 24)
        assert offset_at(offsets, instant) == instant.astimezone(info).utcoffset()
    assert offset_at(offsets, START - timedelta(seconds=1)) is None
    assert offset_at(offsets, START + timedelta(days=36_500)) is None


OLD, LATER, EARLIER = MADRID, "Europe/London", "Europe/Athens"
"""The clocks of London are an hour behind those of Madrid, so a local time comes an hour later. In Athens, earlier."""


def moved(expression: str, planned: datetime, data: str, now: datetime, *, again: bool = False) -> datetime:
    offsets = offsets_of(ZoneInfo(OLD), START)
    with loaded_from({MADRID: data}):
        return moved_to(parse(expression), MADRID, planned, offsets, now, again=again)


@pytest.mark.parametrize(("data", "hour"), [(OLD, 7), (LATER, 8), (EARLIER, 6)])
def test_a_local_time_runs_at_its_new_instant(data: str, hour: int) -> None:
    planned = datetime(2026, 3, 11, 7, 0, tzinfo=UTC)  # 8:00 in Madrid
    wanted = planned.replace(hour=hour)
    assert moved("0 8 * * *", planned, data, NOON) == wanted
    assert moved("0 8,9 * * *", planned, data, NOON) == wanted
    # Of a run that is due at this moment, the new instant may have passed; then it is due.
    assert moved("0 8 * * *", planned, data, planned) == wanted


def test_what_has_run_does_not_run_again_an_hour_later() -> None:
    """At 7:00 UTC it has run for 8:00. With the new data, 8:00 is at 8:00 UTC, which has not passed yet."""
    now = datetime(2026, 3, 10, 7, 30, tzinfo=UTC)
    planned = datetime(2026, 3, 11, 7, 0, tzinfo=UTC)
    assert moved("0 8 * * *", planned, LATER, now) == datetime(2026, 3, 11, 8, 0, tzinfo=UTC)
    # It has run for 8:00, and the next one is that for 9:00.
    assert moved("0 8,9 * * *", now.replace(hour=8, minute=0), LATER, now) == datetime(2026, 3, 10, 9, 0, tzinfo=UTC)


def test_an_interval_follows_real_time() -> None:
    planned = datetime(2026, 3, 10, 12, 20, tzinfo=UTC)
    for data in (LATER, EARLIER):
        assert moved("*/20 * * * *", planned, data, NOON) == planned
    # Within certain hours only, the hours move.
    planned = datetime(2026, 3, 11, 8, 0, tzinfo=UTC)  # the first one of 9:00 in Madrid
    assert moved("*/20 9-17 * * *", planned, LATER, datetime(2026, 3, 10, 20, 0, tzinfo=UTC)) == planned.replace(hour=9)


def test_an_interval_loses_nothing_that_no_producer_has_claimed() -> None:
    planned = datetime(2026, 3, 10, 8, 0, tzinfo=UTC)  # the first one of 9:00 in Madrid
    later = planned + timedelta(hours=5)
    for data in (LATER, EARLIER):
        first = moved("*/20 9-17 * * *", planned, data, later)
        assert first == planned.replace(hour=9 if data == LATER else 8)
    assert moved("*/20 * * * *", planned, LATER, later) == planned


def test_a_run_that_the_present_data_has_stays_if_all_were_planned_anew() -> None:
    planned = datetime(2026, 3, 11, 8, 0, tzinfo=UTC)  # with the new data 8:00, with the old data 9:00
    assert moved("0 8,9 * * *", planned, LATER, NOON) == planned.replace(hour=9)
    assert moved("0 8,9 * * *", planned, LATER, NOON, again=True) == planned
    assert moved("0 8 * * *", planned.replace(hour=7), LATER, NOON, again=True) == planned


def test_a_run_after_a_gap_that_is_gone_takes_its_own_time() -> None:
    planned = datetime(2026, 3, 29, 1, 0, tzinfo=UTC)  # 2:30 is skipped in Madrid
    assert moved("30 2 * * *", planned, "Africa/Lagos", NOON) == datetime(2026, 3, 29, 1, 30, tzinfo=UTC)
    # It stands for all times in the gap, and so for the first one of them. So it does for the end of the gap.
    assert moved("15,45 2 * * *", planned, "Africa/Lagos", NOON) == datetime(2026, 3, 29, 1, 15, tzinfo=UTC)
    assert moved("0 2,3 * * *", planned, "Africa/Lagos", NOON) == planned


@examples(60)
@given(
    hours=st.sets(st.integers(0, 23), min_size=1, max_size=4),
    minute=st.integers(0, 59),
    change=st.integers(0, 3_000),
    data=st.sampled_from([LATER, EARLIER, "Asia/Kolkata", "America/Caracas"]),
)
def test_each_local_time_runs_once_around_a_change_of_the_data(
    hours: set[int], minute: int, change: int, data: str
) -> None:
    """Runs at the instants of the old data until the change, then at those of the new data: each local time once."""
    expression = f"{minute} {','.join(map(str, sorted(hours)))} * * *"
    now = NOON + timedelta(minutes=change)
    before = [at for at in upcoming(parse(expression), OLD, NOON, 30) if at <= now]
    (planned,) = upcoming(parse(expression), OLD, now, 1)
    readings = [at.astimezone(ZoneInfo(OLD)).replace(tzinfo=None) for at in before]
    new = ZoneInfo(data)
    at = moved(expression, planned, data, now)
    with loaded_from({MADRID: data}):
        after = [at, *upcoming(parse(expression), MADRID, at, 6)]
    readings += [one.astimezone(new).replace(tzinfo=None) for one in after]
    first = NOON.astimezone(ZoneInfo(OLD)).replace(tzinfo=None)
    wanted = [
        wall
        for day in range(14)
        for hour in sorted(hours)
        if (wall := (first + timedelta(days=day)).replace(hour=hour, minute=minute)) > first
    ]
    assert readings == wanted[: len(readings)]


def test_the_loader_gives_the_data_of_another_zone() -> None:
    with loaded_from({MADRID: "Asia/Kolkata"}):
        assert NOON.astimezone(zones.zone(MADRID)).hour == 17
    assert NOON.astimezone(zones.zone(MADRID)).hour == 13
