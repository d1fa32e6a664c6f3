"""Executions as a table."""

from __future__ import annotations

from collections.abc import Sequence

from django.utils.translation import gettext as _

from scheduling.core.known_sentences import in_language
from scheduling.management.cron.console import Console
from scheduling.management.cron.moments import moment
from scheduling.management.cron.words import state
from scheduling.models.time_words import format_duration
from scheduling.operations.execution_shapes import ExecutionShape
from scheduling.operations.shapes import UnusableShape


def run_table(console: Console, rows: Sequence[ExecutionShape], unusable: Sequence[UnusableShape] = ()) -> None:
    """Write a table of executions. The rows that cannot be read are told on stderr."""
    columns = [_("ID"), _("State"), _("Due"), _("Took"), _("Schedule or target"), _("Error or reason")]
    if rows:
        console.table(columns, [_row(row) for row in rows])
    for bad in unusable:
        console.note(_("%(id)s cannot be read: %(error)s") % {"id": bad.id, "error": bad.unusable})


def _row(row: ExecutionShape) -> list[object]:
    took = "-"
    if row.started_at is not None and row.finished_at is not None:
        took = format_duration((row.finished_at - row.started_at).total_seconds())
    error = in_language(f"{row.error_class}: {row.error_message}" if row.error_class else row.reason)
    return [
        row.id,
        state(row.state),
        moment(row.scheduled_at),
        took,
        row.schedule_name or row.schedule or row.target.name,
        error,
    ]
