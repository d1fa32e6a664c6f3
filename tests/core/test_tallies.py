"""The series of an attempt, and the limit on the number of targets."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone

import pytest

from scheduling.core.tallies import BOUNDS, LARGEST, MOST_TARGETS, OTHER, Amount, Ended, Series, counted, total_of

NOW = datetime(2026, 3, 10, 12, 34, 56, tzinfo=UTC)
OUTCOMES = ("succeeded", "failed")


def ended(seconds: float = 5.0, at: datetime = NOW, **columns: object) -> Ended:
    columns = {"type": "worker", "target": "a", "outcome": "succeeded", "queue": "main", **columns}
    return Ended(1, started_at=at - timedelta(seconds=seconds), finished_at=at, **columns)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("seconds", "bucket"), [(-9, 0), (0, 0), (1, 0), (1.001, 1), (21_600, 9), (21_601, 10), (1e12, 10)]
)
def test_a_bound_belongs_to_its_bucket(seconds: float, bucket: int) -> None:
    moment = NOW if seconds < 1e9 else datetime(9999, 1, 1, tzinfo=UTC)
    started = NOW - timedelta(seconds=seconds) if seconds < 1e9 else datetime(1, 1, 2, tzinfo=UTC)
    series, amount = counted(replace(ended(), started_at=started, finished_at=moment), OUTCOMES, NOW)
    assert series.bucket == bucket <= len(BOUNDS)
    assert 0 <= amount.milliseconds < 10**12


def test_the_hour_is_in_utc_and_never_lies_in_the_future() -> None:
    hour = datetime(2026, 3, 10, 12, tzinfo=UTC)
    berlin = timezone(timedelta(hours=1))
    for instant in (NOW, NOW.astimezone(berlin), NOW + timedelta(days=3), datetime(1, 1, 2, tzinfo=UTC)):
        assert counted(ended(at=instant), OUTCOMES, NOW)[0].hour == hour
    assert counted(Ended(1), OUTCOMES, NOW)[0] == Series(
        hour, None, "unreadable", "unreadable", "", None, "unreadable", 10
    )


def test_hostile_values_fit_the_columns() -> None:
    hostile = ended(
        type="x" * 99, target="\x00\u202e\n" * 300, outcome="<b>", queue=b"\xff" * 99, schedule="7", group=2**70
    )
    series, _amount = counted(hostile, OUTCOMES, NOW)
    assert (len(series.type), len(series.target), len(series.queue)) == (20, 150, 50)
    assert series.target.isprintable()
    assert (series.outcome, series.schedule, series.group) == ("unreadable", None, None)
    assert Amount(LARGEST, 1) + Amount(1, 1) == Amount(LARGEST, 2)


def test_only_a_delivered_event_without_a_listener_is_unheard() -> None:
    unheard = {"target": "event", "result": '{"listeners": 0}'}
    for changed, expected in (({}, 1), ({"outcome": "failed"}, 0), ({"result": '{"listeners": 1}'}, 0)):
        assert counted(ended(**{**unheard, **changed}), OUTCOMES, NOW)[1].unheard == expected
    assert counted(ended(result='{"listeners": 0}'), OUTCOMES, NOW)[1].unheard == 0


def test_targets_beyond_the_limit_share_totals_for_ever() -> None:
    known: set[str] = set()
    series = [counted(ended(target=f"t{number}"), OUTCOMES, NOW)[0] for number in range(MOST_TARGETS + 5)]
    for _ in range(2):
        names = [total_of(one, known).target for one in series]
        assert names == [f"t{number}" for number in range(MOST_TARGETS)] + [OTHER] * 5
    assert len({one.key for one in series}) == len(series)
