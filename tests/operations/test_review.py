"""The review reads the tallies of the chosen days and of the groups that are seen, whatever plain SQL has written."""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from django.db import DatabaseError, InterfaceError, connection
from django.utils import timezone as clock

from scheduling.core.review import MOST_ROWS, Job, Review, Totals
from scheduling.core.review_range import Range, last_days
from scheduling.models import Tally
from scheduling.models.visibility import EVERYTHING, Visibility
from scheduling.operations.review import review_of
from scheduling.operations.review_lines import COLUMNS, review_lines
from scheduling.operations.review_tables import days_in_words, notes, schedule_names, tables, verdict
from tests.factories import AlertFactory, GroupFactory, SchedulerFactory, TallyFactory
from tests.hostile.values import lenient, write

pytestmark = pytest.mark.django_db

UTC_ZONE = ZoneInfo("UTC")
HOUR = clock.now().replace(minute=0, second=0, microsecond=0)
WEEK = timedelta(days=7)


def this_week() -> Range:
    return last_days(HOUR.date(), UTC_ZONE)


def failed(
    target: str, reason: str, failures: int = 1, attempts: int = 4, at: datetime = HOUR, **columns: Any
) -> Tally:
    """An hour of failed attempts, most of which were retries."""
    numbers = {"failures": failures, "attempts": attempts, "retries": max(attempts - failures, 0), **columns}
    row: Tally = TallyFactory(outcome="failed", target=target, reason=reason, hour=at, **numbers)
    return row


def some_tallies() -> None:
    for at, count in ((HOUR, 10), (HOUR - WEEK, 20)):
        TallyFactory(target="a", attempts=count, milliseconds=count * 90_000, bucket=5, hour=at)
        TallyFactory(target="b", attempts=5, hour=at)
        TallyFactory(outcome="interrupted", target="b", attempts=50, hour=at)
    failed("a", "app.Timeout", failures=2, attempts=6, schedule=11)
    failed("a", "app.Timeout", failures=1, attempts=2, schedule=12)
    failed("a", "OSError", failures=0, attempts=1)
    failed("a", "OSError", failures=4, attempts=4, at=HOUR - WEEK, schedule=11)
    failed("b", "KeyError", failures=1, attempts=1, at=HOUR - WEEK, schedule=13)
    failed("gone", "KeyError", failures=3, attempts=3, at=HOUR - WEEK, schedule=14)
    failed("old", "KeyError", failures=9, attempts=9, at=HOUR - 3 * WEEK)
    TallyFactory(outcome="skipped", reason="paused", attempts=0, milliseconds=0, skips=7, target="a", hour=HOUR)
    TallyFactory(outcome="skipped", reason="not_needed", attempts=2, skips=2, target="b", hour=HOUR)


def test_each_table_has_its_rows_and_the_totals_are_compared() -> None:
    some_tallies()
    found = review_of(this_week(), EVERYTHING)
    assert found.now == Totals(attempts=24, retries=6, failed=9, failures=3, skips=9)
    assert found.before.failures == 8
    assert verdict(found) == "3 failures, 5 fewer than in the week before"
    assert [(row.reason, row.target, row.failures, row.failed) for row in found.failures] == [
        ("app.Timeout", "a", 3, 8), ("OSError", "a", 0, 1),
    ]  # fmt: skip
    assert found.new == [Job("worker", "a", 12, 1)]
    # A job of another schedule runs: this one has not run since.
    assert [(job.target, job.schedule, job.attempts) for job in found.recovered] == [("gone", 14, 0), ("b", 13, 0)]
    assert [slow.target for slow in found.slowest] == ["a", "b"]
    assert found.slowest[0].p95 == 300.0
    assert [(skip.reason, skip.skips) for skip in found.skips] == [("paused", 7), ("not_needed", 2)]
    assert (found.left_out, found.more, found.unread, found.alerts) == (0, {}, {}, [])
    names = [table.name for table in tables(found, {})]
    assert names == ["failures", "new", "recovered", "slowest", "skips", "days"]
    (day,) = [table for table in tables(found, {}) if table.name == "days"]
    assert [cell.text for cell in day.rows[0]][1:] == ["worker", "18", "3", "6", "0.33", "25 %"]


def test_a_target_that_failed_before_and_runs_now_has_recovered() -> None:
    failed("b", "KeyError", at=HOUR - WEEK)
    TallyFactory(target="b", attempts=5, hour=HOUR)
    (job,) = review_of(this_week(), EVERYTHING).recovered
    assert (job.target, job.failures, job.attempts) == ("b", 1, 5)


@pytest.mark.parametrize(
    ("now", "before", "words"),
    [
        (0, 0, "no failures, as in the week before"),
        (1, 0, "1 failure, 1 more than in the week before"),
        (0, 2, "no failures, 2 fewer than in the week before"),
        (1234, 1234, "1,234 failures, as many as in the week before"),
    ],
)
def test_the_verdict_is_one_sentence(now: int, before: int, words: str) -> None:
    review = Review(this_week(), Totals(failures=now), Totals(failures=before))
    assert verdict(review) == words


def test_a_user_is_told_of_his_groups_only() -> None:
    own, other = GroupFactory(), GroupFactory()
    seen, hidden = SchedulerFactory(description="seen", group=own), SchedulerFactory(description="hidden", group=other)
    failed("mine", "Mine", group=own.pk, schedule=seen.pk)
    failed("theirs", "Theirs", group=other.pk, schedule=hidden.pk, failures=50, attempts=60)
    failed("theirs", "Theirs", group=other.pk, schedule=hidden.pk, at=HOUR - WEEK)
    failed("all", "All", schedule=hidden.pk)
    visible = Visibility(frozenset({own.pk}))
    found = review_of(this_week(), visible)
    names = schedule_names(found, visible)
    told = [line for row in review_lines(found, names) for line in row.values()]
    told += [cell.text for table in tables(found, names) for row in table.rows for cell in row]
    assert not {"theirs", "Theirs", "hidden"} & {str(word) for word in told}
    assert {"mine", "all", "seen"} <= {str(word) for word in told}
    assert (found.now.failures, found.before.failures) == (2, 0)
    assert review_of(this_week(), EVERYTHING).now.failures == 52


HOSTILE = {
    "attempts": [-5, 2**62, "many", b"\xff"],
    "milliseconds": [-1, 2**62, "long"],
    "failures": [-1, 2**62, "x"],
    "skips": [-1, 2**62],
    "retries": [-1, 2**62],
    "outcome": ["nonsense", "\u202e", b"\xff"],
    "bucket": [-3, 30_000, "x"],
    "hour": ["nonsense", "infinity", "0000-00-00 00:00:00", f"{HOUR:%Y-%m-%d} nonsense", b"\xff"],
    "type": ["\u202e", b"\xff", "x" * 20],
    "target": ["<b>\x00", b"\xff", "=1+1"],
    "reason": ["\u202e", b"\xff", "=1+1"],
    "schedule": [-1, 2**62, "x"],
    "group": [-1, "x"],
}


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("column", HOSTILE)
def test_a_tally_with_any_value_is_told_or_left_out_and_stops_no_others(column: str) -> None:
    failed("good", "KeyError", failures=2, attempts=5)
    stored = 0
    with lenient():
        for value in HOSTILE[column]:
            row = failed("bad", "OSError", failures=1, attempts=3)
            stored += write(Tally, Tally._meta.get_field(column), row.pk, value) is not None
    found = review_of(this_week(), EVERYTHING)
    assert found.unread == {}
    assert next(failure for failure in found.failures if failure.target == "good").failures == 2
    assert 2 <= found.now.failures <= 2 + len(HOSTILE[column])
    assert found.now.attempts <= 5 + 3 * len(HOSTILE[column])
    if connection.vendor == "sqlite" and column in ("attempts", "failures", "outcome", "bucket"):
        assert found.left_out == stored == len(HOSTILE[column])
        assert "left out" in " ".join(notes(found))
    assert all(set(line) == set(COLUMNS) for line in review_lines(found, {}))


@pytest.mark.django_db(transaction=True)
def test_a_database_that_is_away_is_no_table_that_cannot_be_read() -> None:
    failed("good", "KeyError")
    if connection.vendor == "mysql":
        with suppress(DatabaseError), connection.cursor() as cursor:
            cursor.execute("KILL CONNECTION_ID()")
    else:
        connection.connection.close()
    with pytest.raises((DatabaseError, InterfaceError)):
        review_of(this_week(), EVERYTHING)
    connection.close()
    assert review_of(this_week(), EVERYTHING).now.failures == 1


def test_long_tables_are_cut_and_say_so() -> None:
    for number in range(MOST_ROWS + 3):
        failed(f"t{number}", "KeyError")
    found = review_of(this_week(), EVERYTHING)
    assert len(found.failures) == len(found.new) == len(found.slowest) == MOST_ROWS
    assert found.more["failures"] == found.more["new"] == 3
    assert next(table for table in tables(found, {}) if table.name == "failures").note == "And 3 more."


def test_a_review_of_one_day_compares_with_the_day_before() -> None:
    failed("a", "KeyError")
    failed("a", "KeyError", at=HOUR - timedelta(days=1), failures=2)
    day = last_days(HOUR.date(), UTC_ZONE, 1)
    assert verdict(review_of(day, EVERYTHING)) == "1 failure, 1 fewer than in the day before"
    assert days_in_words(day).endswith(str(HOUR.year))


def test_the_alerts_of_the_days_are_listed() -> None:
    other = GroupFactory()
    AlertFactory(seen="of this week", started_at=HOUR)
    AlertFactory(seen="lasted into it", started_at=HOUR - 2 * WEEK, ended_at=HOUR - timedelta(days=1), open_key=None)
    AlertFactory(seen="long over", started_at=HOUR - 2 * WEEK, ended_at=HOUR - WEEK - timedelta(days=1), open_key=None)
    AlertFactory(seen="of the others", started_at=HOUR, group=other)
    seen = [line.partition(". ")[2] for line in review_of(this_week(), EVERYTHING).alerts]
    assert seen == ["of the others", "of this week", "lasted into it"]
    own = review_of(this_week(), Visibility(frozenset())).alerts
    assert [line.partition(". ")[2] for line in own] == ["of this week", "lasted into it"]
    assert own[0].startswith(f"critical, since {HOUR:%Y-%m-%d %H:%M}: rule")
    assert own[1].startswith(f"critical, {HOUR - 2 * WEEK:%Y-%m-%d %H:%M} to ")
    AlertFactory.create_batch(MOST_ROWS, started_at=HOUR)
    review = review_of(this_week(), EVERYTHING)
    assert (len(review.alerts), review.more["alerts"]) == (MOST_ROWS, 3)
