"""A review as the lines of one table, for CSV files. The column `part` says what a line is about."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from scheduling.core.review import Job, Review, Totals

COLUMNS = (
    "part", "day", "type", "target", "schedule_id", "schedule", "reason", "runs", "attempts", "failures",
    "failed_attempts", "retries", "retries_per_run", "retry_share", "average_seconds", "p95_seconds", "skipped", "text",
)  # fmt: skip
"""The names are the same in each language, because programs read them."""

Line = dict[str, Any]


def review_lines(review: Review, names: Mapping[int, str]) -> Iterator[Line]:
    """The lines: totals, days, failures, newly failing, recovered, slowest, skipped, alerts, what is left out.

    Args:
        names: the names of schedules, by their ids (`review_tables.schedule_names`).
    """
    yield from _totals(review)
    yield from _failures(review)
    for part, jobs in (("newly_failing", review.new), ("recovered", review.recovered)):
        yield from (_line(part, **_job(job, names)) for job in jobs)
    for slow in review.slowest:
        yield _line(
            "slowest", type=slow.type, target=slow.target, attempts=slow.attempts,
            average_seconds=round(slow.average, 3), p95_seconds=slow.p95,
        )  # fmt: skip
    for skip in review.skips:
        yield _line("skipped", type=skip.type, target=skip.target, reason=skip.reason, skipped=skip.skips)
    yield from (_line("alert", text=text) for text in review.alerts)
    yield from _left_out(review)


def _totals(review: Review) -> Iterator[Line]:
    days = review.range
    for part, span, totals in (("total", days, review.now), ("total_before", days.before, review.before)):
        yield _line(part, text=f"{span.first.isoformat()}/{span.last.isoformat()}", **_numbers(totals))
    for row in review.days:
        yield _line("day", day=row.day, type=row.type, **_numbers(row.totals))


def _failures(review: Review) -> Iterator[Line]:
    for failure in review.failures:
        yield _line(
            "failure", type=failure.type, target=failure.target, reason=failure.reason, failures=failure.failures,
            failed_attempts=failure.failed,
        )  # fmt: skip


def _left_out(review: Review) -> Iterator[Line]:
    for name, count in review.more.items():
        yield _line("cut", text=f"{name}: {count} more")
    if review.left_out:
        yield _line("left_out", text=f"{review.left_out} tallies with values that cannot be used")
    for name, error in review.unread.items():
        yield _line("unread", text=f"{name}: {error}")


def _line(part: str, **values: Any) -> Line:
    return dict.fromkeys(COLUMNS) | {"part": part} | values


def _numbers(totals: Totals) -> Line:
    return {
        "runs": totals.runs, "attempts": totals.attempts, "failures": totals.failures,
        "failed_attempts": totals.failed, "retries": totals.retries,
        "retries_per_run": round(totals.retries_per_run, 3), "retry_share": round(totals.retry_share, 4),
        "skipped": totals.skips,
    }  # fmt: skip


def _job(job: Job, names: Mapping[int, str]) -> Line:
    return {
        "type": job.type, "target": job.target, "schedule_id": job.schedule,
        "schedule": names.get(job.schedule or 0), "failures": job.failures, "attempts": job.attempts,
    }  # fmt: skip
