"""Renders a report and stores its files as artefacts of the attempt."""

from __future__ import annotations

from contextlib import ExitStack
from tempfile import TemporaryFile
from typing import Any

from reports.controller import ReportController
from reports.renderers import RENDERERS, renderer_for
from scheduling.execution.artefacts import store
from scheduling.handlers import Run
from scheduling.models import Artefact

PROGRESS_EVERY = 500
"""The run reports its progress after each block of this many rows."""


def deliver(controller: ReportController, params: Any, run: Run) -> list[Artefact]:
    """Read the rows once, write them in each format of the controller, and store the files.

    Rows are written one by one to temporary files without names. The operating system removes these files even if the
    process is killed. Only complete files are stored.

    Returns:
        the artefacts, in the order of the controller's formats.

    Raises:
        ReportError: when `rows` returns None, or when a row does not fit the columns.
        Exception: any error of the controller, the disk, the storage or the database.
    """
    stem = controller.filename(params, run)
    with ExitStack() as stack:
        files = {name: stack.enter_context(TemporaryFile(prefix="report-")) for name in controller.formats}
        renderers = [
            renderer_for(name, file, controller.columns, controller.byte_order_mark) for name, file in files.items()
        ]
        count = 0
        for count, row in enumerate(controller.table(params, run), start=1):
            for renderer in renderers:
                renderer.write(row)
            if count % PROGRESS_EVERY == 0:
                run.progress(count, note="rows")
        for renderer in renderers:
            renderer.finish()
        return [store(run, stem, RENDERERS[name].extension, file, count) for name, file in files.items()]
