"""Reports: `from reports import ReportController, report` in a `reports.py` of any app."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from reports.controller import ReportController
    from reports.registry import report

__all__ = ["ReportController", "report"]


def __getattr__(name: str) -> Any:
    # Late: an app's package is imported before Django's models may be.
    if name == "ReportController":
        from reports.controller import ReportController

        return ReportController
    if name == "report":
        from reports.registry import report

        return report
    raise AttributeError(f"module 'reports' has no attribute {name!r}")
