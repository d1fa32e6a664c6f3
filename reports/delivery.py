"""Renders a report, stores its files as artefacts of the attempt, and mails them."""

from __future__ import annotations

from contextlib import ExitStack
from tempfile import TemporaryFile
from typing import Any

from reports.controller import ReportController
from reports.delivery_options import NO_OPTIONS, DeliveryOptions
from reports.generation import generate
from reports.mailing import mail
from scheduling.execution.artefacts import store
from scheduling.handlers import Run
from scheduling.models import Artefact


def deliver(
    controller: ReportController, params: Any, run: Run, options: DeliveryOptions = NO_OPTIONS
) -> list[Artefact]:
    """Read the rows once, write them in each format, store the files, and mail them to the recipients.

    Rows are written one by one to temporary files without names. The operating system removes these files even if the
    process is killed. Only complete files are stored.

    Args:
        params: an instance of the report's params model.
        options: may replace the formats and the file name of the controller, and names the recipients.

    Returns:
        the artefacts, in the order of the formats.

    Raises:
        ReportError: when a format cannot be written here, when `rows` returns None, or when a row does not fit the
            columns.
        NonRetryableError: the files cannot be mailed.
        Exception: any error of the controller, the disk, the storage or the database.
    """
    own = controller.filename(params, run)
    with ExitStack() as stack:
        formats = options.formats(controller.formats)
        files = {name: stack.enter_context(TemporaryFile(prefix="report-")) for name in formats}
        count = generate(controller, params, run, files)
        artefacts = [store(run, options.stem(own, name), name, file, count) for name, file in files.items()]
    if options.recipients:
        mail(run, options, artefacts, controller.message(params, run))
    return artefacts
