"""Stores the files that a run makes, and removes them together with the execution."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from posixpath import dirname
from typing import IO

from django.core.files import File
from django.core.files.storage import FileSystemStorage, Storage

from scheduling.execution.filenames import safe_filename
from scheduling.handlers import Run
from scheduling.logs import get_logger
from scheduling.models import Artefact

log = get_logger(__name__)

CONTENT_TYPES = {"csv": "text/csv; charset=utf-8", "jsonl": "application/jsonl"}
"""Content types of downloads, by file extension. Any other extension gets `UNKNOWN_TYPE`."""

UNKNOWN_TYPE = "application/octet-stream"


def store(run: Run, stem: str, extension: str, file: IO[bytes], rows: int = 0) -> Artefact:
    """Store a complete file as an artefact of the attempt.

    Args:
        stem: the proposed file name without its extension; unsafe characters are removed.
        rows: the number of rows in the file. The pages show the number.

    Raises:
        Exception: the storage or the database failed; any type of error is possible.
    """
    filename = safe_filename(stem, extension)
    size = file.seek(0, 2)
    file.seek(0)
    ids = {"execution_id": run.execution_id, "attempt": run.attempt}
    content_type = CONTENT_TYPES.get(extension, UNKNOWN_TYPE)
    artefact = Artefact(**ids, filename=filename, content_type=content_type, size=size, rows=rows)
    # The row is saved before the file. If the process dies between these steps, retention finds and removes the row.
    # Retention would never find a file without a row. The artefact does not count as a result until the attempt has
    # succeeded.
    storage = artefact.file.storage
    artefact.file.name = artefact.file.field.generate_filename(artefact, filename)
    artefact.save(force_insert=True)
    kept = storage.save(artefact.file.name, File(file, name=filename))
    if kept != artefact.file.name:
        artefact.file.name = kept
        artefact.save(update_fields=["file"])
    run.log.info("Wrote %s: %d rows, %d bytes", filename, rows, size)
    return artefact


def remove_with_executions(ids: Sequence[int]) -> None:
    """Remove the artefacts of the executions in `ids` before retention removes these executions.

    The function also removes leftovers: artefacts whose execution has already been removed. Retention removes
    executions in the order of their ids, so the function searches for leftovers only below the smallest id in `ids`.

    Args:
        ids: the ids of executions; at least one.
    """
    remove(Artefact.objects.of(ids))
    remove(Artefact.objects.leftovers(before=min(ids)))


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
            log.exception("The file of a report could not be deleted", extra={"artefact": artefact.pk})
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
