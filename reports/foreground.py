"""A report that is made in the foreground: its controller, its checked params and its `Run`, without an execution."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from django.utils import timezone as clock

from reports.controller import ReportController
from reports.delivery_options import DeliveryOptions
from reports.models import Report
from reports.options import options_of
from reports.registry import controller_of
from scheduling.execution.filenames import safe_filename
from scheduling.handlers import Handler, Run, UnknownHandler, find, handlers
from scheduling.handlers.params import merge, validate

MOST_NAMES = 10


@dataclass(frozen=True)
class ForegroundReport:
    """A report that can be made now. Nothing of it is stored in the database."""

    controller: ReportController
    params: Any
    run: Run
    options: DeliveryOptions
    formats: tuple[str, ...]

    def filename(self, format_: str) -> str:
        """The safe name of the file of this format, with its extension."""
        own = self.controller.filename(self.params, self.run)
        return safe_filename(self.options.stem(own, format_), format_)


def foreground_report(
    name: str, given: Mapping[str, Any], format_: str, show_progress: Callable[[str], None]
) -> ForegroundReport:
    """Prepare a report as a run without a schedule would: with the params of its row and with those that are given.

    Args:
        name: the registered name of the controller.
        given: the params of this run. They replace those of the row.
        format_: the only format; empty for the formats that the params or the controller choose.
        show_progress: called with a short text each time the run reports its progress.

    Raises:
        UnknownHandler: no report has this name. The text of the error names similar reports.
        ParamsInvalid: the params do not fit.
    """
    handler = _find(name)
    row = Report.objects.filter(controller=name).first()
    defaults = row.params if row is not None and isinstance(row.params, dict) else {}
    params = validate(handler, merge(defaults, given))
    controller_class = controller_of(handler)
    if controller_class is None:
        raise UnknownHandler(f'The report "{name}" is not a ReportController.')
    controller, options = controller_class(), options_of(params)
    formats = (format_,) if format_ else options.formats(controller.formats)
    return ForegroundReport(controller, params, _run(name, show_progress), options, formats)


def _find(name: str) -> Handler:
    try:
        return find("report", name)
    except UnknownHandler:
        known = [handler.name for handler in handlers("report")]
        similar = get_close_matches(name, known, n=MOST_NAMES)
        hint = f"Similar reports: {', '.join(similar)}." if similar else f"Reports: {', '.join(known[:MOST_NAMES])}."
        raise UnknownHandler(f'There is no report "{name}". {hint}') from None


def _run(name: str, show_progress: Callable[[str], None]) -> Run:
    return Run(
        execution_id=0,  # no execution has this id
        execution_key="foreground",
        attempt=1,
        retry_count=0,
        is_last_attempt=True,
        scheduled_at=clock.now(),
        type="report",
        name=name,
        report_progress=show_progress,
    )
