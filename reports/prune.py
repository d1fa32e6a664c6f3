"""Prune: artefacts go with their executions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from posixpath import dirname
from typing import Any

from django.core.files.storage import FileSystemStorage, Storage

from reports.models import ReportArtefact
from scheduling.logs import get_logger

log = get_logger(__name__)


def remove_artefacts(sender: Any, ids: Sequence[int], **_kwargs: Any) -> None:
    """`executions_pruned` receiver: remove the files and rows of these executions.

    It also takes up what an earlier pass could not remove. Executions are pruned in the order of
    their keys, so below the smallest there are only those that are kept, and leftovers.
    """
    if not ids:
        return
    remove(ReportArtefact.objects.of(ids))
    remove(ReportArtefact.objects.leftovers(before=min(ids)))


def remove(artefacts: Iterable[ReportArtefact]) -> int:
    """Delete each file, then its row; returns how many rows went.

    The file first: cut short in between, the row is still there to try again by, and a file that
    is gone already is no error. One file that cannot be deleted keeps its row, and stops no other.
    """
    done: list[int] = []
    for artefact in artefacts:
        try:
            _delete_file(artefact.file.storage, artefact.file.name or "")
        except Exception:
            log.exception("The file of a report could not be deleted", extra={"artefact": artefact.pk})
        else:
            done.append(artefact.pk)
    return ReportArtefact.objects.filter(pk__in=done).delete()[0] if done else 0


def _delete_file(storage: Storage, name: str) -> None:
    if not name:
        return
    storage.delete(name)
    if isinstance(storage, FileSystemStorage):
        # It deletes empty folders only; one that is in use, or gone, stays as it is.
        for folder in (dirname(name), dirname(dirname(name))):
            with suppress(OSError):
                storage.delete(folder)
