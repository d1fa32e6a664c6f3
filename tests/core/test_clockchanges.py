"""The tests check the effect of a clock change on a schedule: which runs are moved, dropped or repeated."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from scheduling.core.clockchanges import Effect, changes_met, effect_on
from scheduling.core.cron import ZoneError, parse, upcoming

YEAR = (datetime(2026, 1, 1, tzinfo=UTC), datetime(2027, 1, 1, tzinfo=UTC))


@pytest.mark.parametrize(
    ("expression", "zone", "met"),
    [
        ("30 2 * * *", "Europe/Madrid", [(True, "02:00", "03:00", 1, "moved"), (False, "02:00", "03:00", 1, "once")]),
        ("*/20 2 * * *", "Europe/Madrid",
         [(True, "02:00", "03:00", 3, "dropped"), (False, "02:00", "03:00", 3, "twice")]),
        ("0 * * * *", "Europe/Madrid", [(True, "02:00", "03:00", 1, "steady"), (False, "02:00", "03:00", 1, "steady")]),
        ("0 3 * * *", "Europe/Madrid", []),
        ("59 1 * * *", "Europe/Madrid", []),
        ("30 2 * * *", "UTC", []),
        ("30 2 * * 1", "Europe/Madrid", []),
        ("45 1 * * *", "Australia/Lord_Howe", [(False, "01:30", "02:00", 1, "once")]),
        ("0 0 * * *", "Africa/Cairo", [(True, "00:00", "01:00", 1, "moved")]),
        ("30 23 * * *", "Africa/Cairo", [(False, "23:00", "00:00", 1, "once")]),
    ],
)  # fmt: skip
def test_clock_changes_that_affect_a_schedule(
    expression: str, zone: str, met: list[tuple[bool, str, str, int, str]]
) -> None:
    found = changes_met(parse(expression), zone, *YEAR)
    assert [
        (change.skipped, f"{change.start:%H:%M}", f"{change.end:%H:%M}", change.readings, change.effect.value)
        for change in found
    ] == met


@pytest.mark.parametrize(
    ("expression", "after", "effects"),
    [
        # Each search starts at noon UTC on the day before a clock change in Madrid.
        ("30 2 * * *", datetime(2026, 3, 28, 12, tzinfo=UTC), [(Effect.MOVED, 1), None]),
        ("30 2 * * *", datetime(2026, 10, 24, 12, tzinfo=UTC), [(Effect.ONCE, 1), None]),
        ("*/30 2 * * *", datetime(2026, 10, 24, 12, tzinfo=UTC),
         [(Effect.TWICE, 1), (Effect.TWICE, 1), (Effect.TWICE, 2), (Effect.TWICE, 2), None]),
        ("0 8 * * *", datetime(2026, 10, 24, 12, tzinfo=UTC), [None, None]),
    ],
)  # fmt: skip
def test_the_effect_on_each_run(expression: str, after: datetime, effects: list[object]) -> None:
    runs = upcoming(parse(expression), "Europe/Madrid", after, len(effects))
    assert [effect_on(parse(expression), "Europe/Madrid", run) for run in runs] == effects


def test_a_moved_run_comes_at_the_clock_change() -> None:
    cron = parse("15,30,45 2 * * *")
    (gap, _fold) = changes_met(cron, "Europe/Madrid", *YEAR)
    moved = upcoming(cron, "Europe/Madrid", gap.instant - timedelta(seconds=1), 1)
    assert (gap.readings, moved) == (3, [gap.instant])


def test_a_zone_that_does_not_exist() -> None:
    with pytest.raises(ZoneError):
        changes_met(parse("0 8 * * *"), "Nowhere", *YEAR)
