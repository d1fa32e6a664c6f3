"""Stores a file that a handler attaches to its run, as an artefact of its execution."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
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

Source = str | os.PathLike[str] | IO[bytes]
"""What a handler may attach: a path, or a binary file."""

MOST_ATTACHED = 100
"""An attempt may have so many artefacts."""


def attach(run: Run, source: Source, name: str = "", *, outer_blocks: int = 0) -> None:
    """Store a file as an artefact of the attempt. See `Run.attach`.

    Args:
        outer_blocks: how many blocks of `transaction.atomic` are open around the handler. A test may have one.

    Raises:
        AttachmentError: the file, its name or its size is refused.
        FencedOff: the attempt does not own its execution any more.
        Exception: the storage or the database failed. Nothing is left of the file.
    """
    with checked_file(source, name, outer_blocks) as (file, parts):
        _attach(run, file, parts)


def open_blocks() -> int:
    """How many blocks of `transaction.atomic` are open now."""
    connection = transaction.get_connection()
    return len(connection.atomic_blocks) if connection.in_atomic_block else 0


@contextmanager
def checked_file(source: Source, name: str, outer_blocks: int) -> Iterator[tuple[IO[bytes], tuple[str, str]]]:
    """Check what a handler attaches; gives the open file, and its name as stem and extension.

    Args:
        outer_blocks: see `attach`.

    Raises:
        AttachmentError: the file, its name or its size is refused, or a transaction of the handler is open.
    """
    with _checked(source, name) as found:
        if open_blocks() > outer_blocks:
            # If the transaction were rolled back, the row would be lost, and nothing would find the file again.
            raise AttachmentError(
                "Attach a file outside of transaction.atomic(): a rollback would leave the file behind."
            )
        yield found


@contextmanager
def _checked(source: Source, name: str) -> Iterator[tuple[IO[bytes], tuple[str, str]]]:
    if isinstance(source, str | os.PathLike):
        path = Path(source)
        parts = checked_name(name or path.name)
        with _opened(path) as file:
            _check_size(file)
            yield file, parts
        return
    given = getattr(source, "name", "")  # a file without a name may have a number instead
    parts = checked_name(name or (os.path.basename(given) if isinstance(given, str) else ""))
    _check_size(source)
    yield source, parts


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
    check_owner(run.execution_id, run.attempt)  # before the file is read
    artefacts = Artefact.objects.filter(execution=run.execution_id, attempt=run.attempt)
    check_number(artefacts.count())
    filename = safe_filename(*parts)
    try:
        store(run, *parts, file)
    except IntegrityError:
        raise taken(filename) from None
    except Exception:
        with suppress(Exception):  # retention removes what is left
            remove(artefacts.filter(filename=filename))
        raise


def check_number(attached: int) -> None:
    """Check that an attempt with so many files may have one more.

    Raises:
        AttachmentError: it may not.
    """
    if attached >= MOST_ATTACHED:
        raise AttachmentError(f"This attempt has {MOST_ATTACHED} files, and can have no more. Attach an archive.")


def taken(filename: str) -> AttachmentError:
    """The error for a second file with the same name."""
    return AttachmentError(f"This attempt has a file {filename!r} already. Choose another name.")


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
