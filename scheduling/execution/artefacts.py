"""Stores the files that a run makes, and removes them together with the execution."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from hashlib import file_digest
from posixpath import dirname
from typing import IO

from django.core.files import File
from django.core.files.storage import FileSystemStorage, Storage
from django.db import transaction

from scheduling.core.steps import FencedOff
from scheduling.execution.filenames import safe_filename
from scheduling.execution.ownership import check_owner
from scheduling.handlers import Run
from scheduling.logs import get_logger
from scheduling.models import Artefact

log = get_logger(__name__)

CONTENT_TYPES = {
    "csv": "text/csv; charset=utf-8",
    "html": "text/html; charset=utf-8",
    "json": "application/json",
    "jsonl": "application/jsonl",
    "xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
}
"""Content types of artefacts, by file extension. Any other extension gets `UNKNOWN_TYPE`."""

UNKNOWN_TYPE = "application/octet-stream"

SHOWN_BY_BROWSERS = {"html"}
"""Extensions of files that a browser could show as a page of the admin's site, with the rights of its user."""


def download_type(extension: str) -> str:
    """The content type with which a download sends a file.

    The header `Content-Disposition` already tells a browser not to show a page. If a proxy drops this header, the type
    `UNKNOWN_TYPE` still prevents it.
    """
    return UNKNOWN_TYPE if extension in SHOWN_BY_BROWSERS else CONTENT_TYPES.get(extension, UNKNOWN_TYPE)


def store(run: Run, stem: str, extension: str, file: IO[bytes], rows: int | None = None) -> Artefact:
    """Store a complete file as an artefact of the attempt, with its size and its SHA-256.

    Args:
        file: a binary file. It is read from its beginning, and stays open.
        stem: the proposed file name without its extension; unsafe characters are removed.
        rows: the number of rows in the file. The pages show the number. None: the file has no rows.

    Raises:
        FencedOff: another process owns the execution by now. Nothing is left of the file.
        Exception: the storage or the database failed; any type of error is possible.
    """
    filename = safe_filename(stem, extension)
    size = file.seek(0, 2)
    file.seek(0)
    facts = {"size": size, "rows": rows, "checksum": file_digest(file, "sha256").hexdigest()}  # type: ignore[arg-type]
    file.seek(0)
    ids = {"execution_id": run.execution_id, "attempt": run.attempt}
    content_type = CONTENT_TYPES.get(extension, UNKNOWN_TYPE)
    artefact = Artefact(**ids, filename=filename, content_type=content_type, **facts)
    # The row is saved before the file. If the process dies between these steps, retention finds and removes the row.
    # Retention would never find a file without a row. The artefact does not count as a result until the attempt has
    # succeeded.
    storage = artefact.file.storage
    artefact.file.name = artefact.file.field.generate_filename(artefact, filename)
    with transaction.atomic():
        check_owner(run.execution_id, run.attempt)
        artefact.save(force_insert=True)
    kept = storage.save(artefact.file.name, File(file, name=filename))
    try:
        with transaction.atomic():
            if kept != artefact.file.name:
                artefact.file.name = kept
                artefact.save(update_fields=["file"])
            check_owner(run.execution_id, run.attempt)  # a large file takes long, and a storage may be slow
    except FencedOff:
        artefact.file.name = kept
        remove([artefact])
        raise
    run.log.info("Wrote %s: %s%d bytes", filename, "" if rows is None else f"{rows} rows, ", size)
    return artefact


def remove(artefacts: Iterable[Artefact]) -> int:
    """Delete the files of artefacts, and then the rows. Returns how many rows were deleted.

    If the function is interrupted after it has deleted a file, the row remains, and a later pass tries again. To delete
    a file twice is not an error. If a file cannot be deleted, its row is kept, and the function continues with the next
    artefact.
    """
    done: list[int] = []
    for artefact in artefacts:
        try:
            _delete_file(artefact.file.storage, artefact.file.name or "")
        except Exception:
            log.exception("The file of an artefact could not be deleted", extra={"artefact": artefact.pk})
        else:
            done.append(artefact.pk)
    return Artefact.objects.filter(pk__in=done).delete()[0] if done else 0


def _delete_file(storage: Storage, name: str) -> None:
    if not name:
        return
    storage.delete(name)
    if isinstance(storage, FileSystemStorage):
        # Remove the file's folder and its parent folder if they are empty. Otherwise `delete` raises OSError.
        for folder in (dirname(name), dirname(dirname(name))):
            with suppress(OSError):
                storage.delete(folder)
