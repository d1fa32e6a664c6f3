"""Stores a file that a handler attaches to its run, as an artefact of its execution."""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

from django.db import IntegrityError, transaction
from django.template.defaultfilters import filesizeformat

from scheduling.conf import get_conf
from scheduling.core.attachments import AttachmentError, checked_name
from scheduling.execution.artefacts import remove, store
from scheduling.execution.filenames import safe_filename
from scheduling.execution.ownership import check_owner
from scheduling.handlers import Run
from scheduling.models import Artefact

MOST_ATTACHED = 100
"""An attempt may have so many artefacts."""


def attach(run: Run, source: str | os.PathLike[str] | IO[bytes], name: str = "") -> None:
    """Store a file as an artefact of the attempt. See `Run.attach`.

    Raises:
        AttachmentError: the file, its name or its size is refused.
        FencedOff: the attempt does not own its execution any more.
        Exception: the storage or the database failed. Nothing is left of the file.
    """
    if isinstance(source, str | os.PathLike):
        path = Path(source)
        parts = checked_name(name or path.name)
        with _opened(path) as file:
            _attach(run, file, parts)
        return
    given = getattr(source, "name", "")  # a file without a name may have a number instead
    parts = checked_name(name or (os.path.basename(given) if isinstance(given, str) else ""))
    _attach(run, source, parts)


def _opened(path: Path) -> IO[bytes]:
    try:
        # A named pipe would block, and a device may never end.
        if not stat.S_ISREG(path.stat().st_mode):
            raise AttachmentError(f"{str(path)[:200]!r} cannot be attached: it is no file, but a folder or a device.")
        return path.open("rb")
    except (OSError, ValueError) as error:
        if isinstance(error, AttachmentError):
            raise
        reason = getattr(error, "strerror", None) or error
        raise AttachmentError(f"{str(path)[:200]!r} cannot be attached: {reason}.") from None


def _attach(run: Run, file: IO[bytes], parts: tuple[str, str]) -> None:
    _check_size(file)
    if transaction.get_connection().in_atomic_block:
        # If the transaction were rolled back, the row would be lost, and nothing would find the file again.
        raise AttachmentError("Attach a file outside of transaction.atomic(): a rollback would leave the file behind.")
    check_owner(run.execution_id, run.attempt)  # before the file is read
    artefacts = Artefact.objects.filter(execution=run.execution_id, attempt=run.attempt)
    if artefacts.count() >= MOST_ATTACHED:
        raise AttachmentError(f"This attempt has {MOST_ATTACHED} files, and can have no more. Attach an archive.")
    filename = safe_filename(*parts)
    try:
        store(run, *parts, file)
    except IntegrityError:
        raise AttachmentError(f"This attempt has a file {filename!r} already. Choose another name.") from None
    except Exception:
        with suppress(Exception):  # retention removes what is left
            remove(artefacts.filter(filename=filename))
        raise


def _check_size(file: Any) -> None:
    try:
        if not (file.readable() and file.seekable() and isinstance(file.read(0), bytes)):
            raise TypeError
        size = file.seek(0, os.SEEK_END)
    except (AttributeError, TypeError, ValueError, OSError):
        kind = type(file).__name__
        raise AttachmentError(f"A {kind} cannot be attached: give a path, or a file opened in mode 'rb'.") from None
    most = get_conf().attachment_max_bytes
    if size > most:
        sizes = f"{filesizeformat(size)} ({size:,} bytes); at most {most:,} bytes are allowed"
        raise AttachmentError(f"The file has {sizes} (CRON_ATTACHMENT_MAX_BYTES).")
