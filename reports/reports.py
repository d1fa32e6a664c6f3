"""The built-in reports, registered as those of any app are."""

from __future__ import annotations

from reports.failure_review import FailureReview, FailureReviewParams
from reports.registry import report

report("failure_review", params=FailureReviewParams, time_limit=3600)(FailureReview)
