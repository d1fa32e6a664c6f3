"""The reports app. Define a report with `from reports import ReportController, report` in an app's `reports.py`."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from reports.controller import ReportController
    from reports.message import ReportMessage
    from reports.registry import report

__all__ = ["ReportController", "ReportMessage", "report"]

_MODULES = {
    "ReportController": "reports.controller", "ReportMessage": "reports.message", "report": "reports.registry",
}  # fmt: skip


def __getattr__(name: str) -> Any:
    # The modules are imported late, because Django imports this package before models may be imported.
    if name not in _MODULES:
        raise AttributeError(f"module 'reports' has no attribute {name!r}")
    return getattr(import_module(_MODULES[name]), name)
