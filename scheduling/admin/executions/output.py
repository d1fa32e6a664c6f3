"""An execution's stored output as HTML: the last lines, or the lines after a cursor."""

from __future__ import annotations

from dataclasses import dataclass, field

from django.utils.safestring import SafeString

from scheduling.admin.executions.output_lines import lines_html
from scheduling.operations import output
from scheduling.operations.output import Cursor, Lines, OutputLimits
from scheduling.operations.output_filter import Wanted


@dataclass
class Shown:
    """Lines of output as `output.Lines` has them, but as HTML, and their number."""

    groups: list[tuple[int, SafeString]] = field(default_factory=list)
    lines: int = 0
    cursor: Cursor = field(default_factory=Cursor)
    cut: bool = False
    unsearched: bool = False


def tail(execution_id: int, wanted: Wanted | None = None, limit: int = OutputLimits.shown_lines) -> Shown:
    """The last lines."""
    wanted = wanted or Wanted()
    return _shown(output.tail(execution_id, wanted, limit), wanted)


def after(execution_id: int, cursor: Cursor, wanted: Wanted | None = None) -> Shown:
    """The lines that follow the cursor, up to the limits of one answer."""
    wanted = wanted or Wanted()
    return _shown(output.after(execution_id, cursor, wanted), wanted)


def _shown(found: Lines, wanted: Wanted) -> Shown:
    return Shown(
        [(number, lines_html(lines, wanted)) for number, lines in found.groups],
        sum(len(lines) for _number, lines in found.groups),
        found.cursor,
        found.cut,
        found.unsearched,
    )
