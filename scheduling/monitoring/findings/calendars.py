"""Findings about calendars whose dates are over."""

from __future__ import annotations

from collections.abc import Iterator

from django.utils.translation import gettext as _

from scheduling.models import Calendar
from scheduling.monitoring.findings.finding import Finding, Named, named, warn
from scheduling.monitoring.findings.present import Present
from scheduling.monitoring.findings.watched import run_out_calendars


def examine(present: Present) -> Iterator[Finding]:
    """Report calendars in use that name no date from now on. A list of holidays needs new dates each year."""
    finding = warn(
        "calendars",
        _("Calendars whose dates are all over: %(count)s."),
        _("Add the dates to come, or delete the lines that are over."),
    )
    yield from named(finding, present.rows(run_out_calendars), _named, total=present.count(run_out_calendars))


def _named(row: Calendar) -> Named:
    return Named(str(row), _("the last date was %(date)s") % {"date": f"{row.last_date:%Y-%m-%d}"}, row.pk)
