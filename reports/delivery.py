"""Delivery: render a report and keep its files as the attempt's artefacts."""

from __future__ import annotations

from contextlib import ExitStack
from tempfile import TemporaryFile
from typing import IO, Any

from django.core.files import File

from reports.controller import ReportController
from reports.filenames import safe_filename
from reports.models import ReportArtefact
from reports.renderers import RENDERERS, renderer_for
from scheduling.run import Run

PROGRESS_EVERY = 500
"""Rows between two words about the progress."""


def deliver(controller: ReportController, params: Any, run: Run) -> list[ReportArtefact]:
    """Render the rows once into every format of the controller, then store the files.

    The rows pass one by one into temporary files without a name, of which nothing is left
    however the process ends; what is stored is complete.

    Raises:
        ReportError: when a row does not fit the columns.
        Exception: whatever the controller, the disk, the storage or the database raises.
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
        return [_store(run, name, file, stem, count) for name, file in files.items()]


def _store(run: Run, format_: str, file: IO[bytes], stem: str, rows: int) -> ReportArtefact:
    kind = RENDERERS[format_]
    filename = safe_filename(stem, kind.extension)
    size = file.seek(0, 2)
    file.seek(0)
    artefact = ReportArtefact(
        execution_id=run.execution_id,
        attempt=run.attempt,
        filename=filename,
        content_type=kind.content_type,
        size=size,
        rows=rows,
    )
    # The row before the file: a process that dies in between leaves a row that retention finds,
    # not a file that nobody knows. The row counts for nothing until the attempt has succeeded.
    storage = artefact.file.storage
    artefact.file.name = artefact.file.field.generate_filename(artefact, filename)
    artefact.save(force_insert=True)
    kept = storage.save(artefact.file.name, File(file, name=filename))
    if kept != artefact.file.name:
        artefact.file.name = kept
        artefact.save(update_fields=["file"])
    run.log.info("Wrote %s: %d rows, %d bytes", filename, rows, size)
    return artefact
