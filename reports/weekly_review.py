"""Defines the weekly review, a report on what failed, was retried, took long and was skipped in the last days."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

from pydantic import BaseModel, ConfigDict, Field

from reports.controller import ReportController, Row
from reports.failure_review import visible_to
from reports.message import ReportMessage
from reports.review_letter import review_letter
from scheduling.conf import get_conf
from scheduling.core.review import Review
from scheduling.core.review_range import DAYS, MOST_DAYS, last_days
from scheduling.core.zones import zone
from scheduling.handlers import Run
from scheduling.operations.review import review_of
from scheduling.operations.review_lines import COLUMNS, review_lines
from scheduling.operations.review_tables import schedule_names


class WeeklyReviewParams(BaseModel):
    """Which days the review is about."""

    model_config = ConfigDict(extra="forbid")

    days: int = Field(
        DAYS, ge=1, le=MOST_DAYS, description=f"How many whole days before the day of the run, 1 to {MOST_DAYS}."
    )


class WeeklyReview(ReportController):
    """Tells what failed, was retried, took long and was skipped, by default in the 7 days before today.

    The mail compares these days with as many days before them. The file has all tables of the review.
    """

    title = "Weekly review"
    formats = ("csv",)
    columns = COLUMNS

    def rows(self, params: WeeklyReviewParams, run: Run) -> Iterator[Row]:
        """Yield the lines of the review. Like the failure review, it tells a group only of itself."""
        review, names = self._read(params, run)
        return review_lines(review, names)

    def message(self, params: WeeklyReviewParams, run: Run) -> ReportMessage:
        """The verdict as the subject, and the tables."""
        review, names = self._read(params, run)
        return review_letter(review, names, str(self.title), limited=visible_to(run).is_limited)

    def _read(self, params: WeeklyReviewParams, run: Run) -> tuple[Review, dict[int, str]]:
        """The review, which is read once, and the names of its schedules."""
        if self._known is None:
            info, visible = zone(get_conf().timezone), visible_to(run)
            yesterday = run.scheduled_at.astimezone(info).date() - timedelta(days=1)
            review = review_of(last_days(yesterday, info, params.days), visible)
            self._known = review, schedule_names(review, visible)
        return self._known

    _known: tuple[Review, dict[int, str]] | None = None
