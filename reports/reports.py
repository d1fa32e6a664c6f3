"""Registers the built-in reports. They are registered in the same way as the reports of any app."""

from __future__ import annotations

from reports.failure_review import FailureReview, FailureReviewParams
from reports.registry import report

report("failure_review", params=FailureReviewParams, time_limit=3600)(FailureReview)
