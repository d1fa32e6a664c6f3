"""Findings about rows that cannot be processed because of their values, or that the database refuses to change."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from django.utils.translation import gettext as _

from scheduling.core.known_sentences import for_reader
from scheduling.core.text import visible_text
from scheduling.models import RefusedRow, SchedulerExecution
from scheduling.monitoring.findings import watched
from scheduling.monitoring.findings.finding import Finding, Named, fail, named, warn
from scheduling.monitoring.findings.present import Failed, Present
from scheduling.processes.set_aside import ERROR_CLASS

LOOKED_AT = 1_000
"""How many refused rows are read."""


def examine(present: Present) -> Iterator[Finding]:
    """Find refused rows, and failed executions with a column that cannot be used."""
    advice = _("A trigger or a constraint refuses every change. Fix the row: it is tried again every minute.")
    sentences = {
        RefusedRow.Kind.SCHEDULER: _("Schedules that the database refuses to change: %(count)s."),
        RefusedRow.Kind.EXECUTION: _("Executions that the database refuses to change: %(count)s."),
    }
    refused = list[RefusedRow]()
    if present.count(watched.refused):
        refused = list(present.rows(watched.refused).only("kind", "row_id", "error")[:LOOKED_AT])
    for kind, sentence in sentences.items():
        rows = [row for row in refused if row.kind == kind]
        yield from named(fail(f"refused {kind.value}", sentence, advice), rows, _refused)
    yield from _unusable(present.failures)


def _unusable(failures: Iterable[Failed]) -> Iterator[Finding]:
    """Only among the newest failures, because no index contains the error."""
    pks = [failed.pk for failed in failures if failed.error_class == ERROR_CLASS]
    if pks:
        seen = _("Failed executions with a column that cannot be used: %(count)s.")
        finding = warn("unusable", seen, _("The error names the column. Fix its value, then republish."))
        # Only these columns, because the others may be unreadable.
        rows = SchedulerExecution.objects.filter(pk__in=pks).order_by("-pk").only("pk", "error_message")
        yield from named(finding, rows, _with_error)


def _refused(row: RefusedRow) -> Named:
    return Named(str(row), visible_text(row.error, 200), row.row_id)


def _with_error(row: SchedulerExecution) -> Named:
    return Named(_("execution %(number)s") % {"number": row.pk}, for_reader(row.error_message, 200), row.pk)
