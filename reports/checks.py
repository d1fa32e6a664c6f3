"""Django's system checks of reports. The warning W001 stops no command."""

from __future__ import annotations

from typing import Any

from django.core.checks import CheckMessage, Warning, register

from reports.registry import controller_of
from reports.renderers import RENDERERS
from scheduling.handlers import handlers


@register("reports")
def check_formats(**_kwargs: Any) -> list[CheckMessage]:
    """W001: a package that a report's format needs is not installed. The runs of this report will fail."""
    return [
        Warning(f"Report {handler.name!r} cannot be written. {problem}", id="reports.W001")
        for handler in handlers("report")
        for format_ in getattr(controller_of(handler), "formats", ())
        if (problem := RENDERERS[format_].missing())
    ]
