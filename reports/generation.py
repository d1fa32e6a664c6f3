"""Writes the rows of a report into files, in one or more formats."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from typing import IO, Any

from reports.controller import ReportController, ReportError
from reports.renderers import RENDERERS
from scheduling.handlers import Run

PROGRESS_EVERY = 500
"""The run reports its progress after each block of this many rows."""


def generate(controller: ReportController, params: Any, run: Run, files: Mapping[str, IO[bytes]]) -> int:
    """Read the rows once, and write each row into each file.

    Args:
        params: an instance of the report's params model.
        files: an empty binary file for each format. It can be written and searched, and it stays open.

    Returns:
        the number of rows.

    Raises:
        ReportError: when a format cannot be written here, when `rows` returns None, or when a row does not fit the
            columns.
        Exception: any error of the controller or the disk. The files then have no use.
    """
    for name in files:
        if problem := RENDERERS[name].missing() or RENDERERS[name].misfit(controller.columns):
            raise ReportError(problem)
    title, mark = str(controller.title or run.name), controller.byte_order_mark  # a title may be translated lazily
    with ExitStack() as stack:
        renderers = [
            stack.enter_context(RENDERERS[name](file, controller.columns, title=title, byte_order_mark=mark))
            for name, file in files.items()
        ]
        count = 0
        for count, row in enumerate(controller.table(params, run), start=1):
            for renderer in renderers:
                renderer.write(row)
            if count % PROGRESS_EVERY == 0:
                run.progress(count, note="rows")
        for renderer in renderers:
            renderer.finish()
    return count
