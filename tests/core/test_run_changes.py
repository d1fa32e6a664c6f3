"""The next runs of a schedule before and after an edit, side by side."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from scheduling.core.cron import parse, upcoming
from scheduling.core.run_changes import Mark, compare
from tests.support import NOON, examples

LIMIT = 20
MINUTES = st.lists(st.integers(0, 400), unique=True, max_size=LIMIT).map(
    lambda found: [NOON + timedelta(minutes=number) for number in sorted(found)]
)


def runs(expression: str, tz: str = "UTC", after: datetime = NOON) -> list[datetime]:
    return upcoming(parse(expression), tz, after, LIMIT)


def marks(before: list[datetime], after: list[datetime]) -> list[str]:
    return [one.mark.value for one in compare(before, after, LIMIT)]


def test_an_hour_later_is_a_change_of_each_run() -> None:
    found = compare(runs("0 8 * * *"), runs("0 9 * * *"), LIMIT)
    assert {one.mark for one in found} == {Mark.CHANGED}
    assert all(one.after is not None and one.before is not None for one in found)
    assert {(one.after or NOON) - (one.before or NOON) for one in found} == {timedelta(hours=1)}
    assert len(found) == LIMIT


def test_the_run_of_today_that_only_the_new_times_have_is_added() -> None:
    now = datetime(2026, 3, 10, 8, 30, tzinfo=UTC)
    found = compare(runs("0 8 * * *", after=now), runs("0 9 * * *", after=now), LIMIT)
    assert (found[0].mark, found[0].after) == (Mark.ADDED, datetime(2026, 3, 10, 9, 0, tzinfo=UTC))
    assert (found[1].before, found[1].after) == (
        datetime(2026, 3, 11, 8, 0, tzinfo=UTC), datetime(2026, 3, 11, 9, 0, tzinfo=UTC),
    )  # fmt: skip


def test_more_and_fewer_runs_are_told() -> None:
    assert marks(runs("0 * * * *"), runs("*/30 * * * *")) == ["added", "same"] * 10
    assert marks(runs("0 8 * * *"), runs("0 8 * * 1-5")).count("removed") == 6
    assert set(marks(runs("0 8 * * *"), [])) == {"removed"}
    assert set(marks([], runs("0 8 * * *"))) == {"added"}
    assert set(marks(runs("0 8 * * *"), runs("0 8 * * *"))) == {"same"}


def test_the_zone_and_a_clock_change_are_seen() -> None:
    # On 29 March, the clocks of Madrid change. Until then, 8:00 in Madrid is 7:00 UTC.
    before, after = runs("0 7 * * *"), runs("0 8 * * *", "Europe/Madrid")
    assert marks(before, after) == ["same"] * 18 + ["changed"] * 2


@examples(200)
@given(before=MINUTES, after=MINUTES)
def test_no_run_is_lost_or_told_twice(before: list[datetime], after: list[datetime]) -> None:
    found = compare(before, after, LIMIT)
    ends = [instants[-1] for instants in (before, after) if len(instants) >= LIMIT]
    end = min(ends, default=NOON + timedelta(days=9))
    for own, instants in ((lambda one: one.before, before), (lambda one: one.after, after)):
        told = [own(one) for one in found if own(one) is not None]
        assert sorted(set(told)) == sorted(told)
        assert set(told) <= set(instants)
        assert {instant for instant in instants if instant <= end} <= set(told)
    assert [one.at for one in found] == sorted(one.at for one in found)
    for one in found:
        assert (one.mark is Mark.SAME) == (one.before == one.after)
