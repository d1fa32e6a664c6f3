"""Registers the built-in reports, in the same way as an app registers its own reports."""

from __future__ import annotations

from reports.failure_review import FailureReview, FailureReviewParams
from reports.registry import report
from reports.weekly_review import WeeklyReview, WeeklyReviewParams

report("weekly_review", params=WeeklyReviewParams, time_limit=3600)(WeeklyReview)
report("failure_review", params=FailureReviewParams, time_limit=3600)(FailureReview)
