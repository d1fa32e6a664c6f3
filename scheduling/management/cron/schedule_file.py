"""The file of `cron export` and `cron apply`: its format, its name, and how it is read and written."""

from __future__ import annotations

import os
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import cast

from django.utils.translation import gettext as _

from scheduling.core.schedule_files import MAX_BYTES, Contents, FileInvalid, Format, read_whole
from scheduling.core.text import visible_text
from scheduling.core.yaml_documents import YamlMissing
from scheduling.operations.refused import Code, Problem, Refused

STANDARD = "-"
"""Stands for the standard input or output."""
FORMATS = ("json", "yaml")


def format_of(file: str, asked: str | None, data: bytes = b"") -> Format:
    """The format that the caller asks for, else that of the file's suffix, else that of the data.

    Args:
        data: what the file holds, if it is known.
    """
    if asked is not None:
        return cast(Format, asked)
    if file == STANDARD:
        return "yaml" if data and not data.removeprefix(b"\xef\xbb\xbf").lstrip().startswith((b"{", b"[")) else "json"
    return "yaml" if Path(file).suffix.lower() in (".yaml", ".yml") else "json"


def read_bytes(file: str, most: int) -> bytes:
    """The content of a file, or of standard input (`-`). Of a longer one, `most` bytes and one more.

    Raises:
        OSError, ValueError: it cannot be read. ValueError: a NUL in the name.
    """
    if file == STANDARD:
        return sys.stdin.buffer.read(most + 1)
    with open(file, "rb") as stream:
        return stream.read(most + 1)


def read_entries(file: str, asked: str | None) -> Contents:
    """The entries of the file.

    Raises:
        Refused: INVALID; the file cannot be read, or its content cannot be used.
    """
    try:
        data = read_bytes(file, MAX_BYTES)
    except (OSError, ValueError) as error:
        raise _unusable(file, error) from None
    try:
        return read_whole(data, format_of(file, asked, data))
    except FileInvalid as error:
        raise invalid(error) from None
    except YamlMissing as error:
        raise Refused(Code.INVALID, str(error)) from None


def must_be_new(file: str) -> None:
    """Look whether the file may be written without a question. `-`, a device and a named pipe always may.

    Raises:
        Refused: CONFLICT; the file exists. INVALID; its name cannot be used.
    """
    try:
        exists = file != STANDARD and Path(file).is_file()
    except (OSError, ValueError) as error:
        raise _unusable(file, error) from None
    if exists:
        said = _("The file %(file)s exists. To replace it, add --force.") % {"file": visible_text(file, 200)}
        raise Refused(Code.CONFLICT, said)


def write_text(file: str, text: str) -> None:
    """Write the file as a whole: a reader sees the former file or the new one.

    Raises:
        Refused: INVALID; the file cannot be written.
    """
    path = Path(file)
    try:
        if path.exists() and not path.is_file():  # /dev/stdout, a named pipe
            path.write_text(text, encoding="utf-8")
            return
        target = path.resolve()
        handle, part = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name[:50]}.")
        try:
            with os.fdopen(handle, "w", encoding="utf-8", newline="\n") as stream:
                stream.write(text)
            os.chmod(part, target.stat().st_mode & 0o777 if target.exists() else 0o666 & ~_umask())
            os.replace(part, target)
        except OSError:
            with suppress(OSError):
                os.unlink(part)
            raise
    except (OSError, ValueError) as error:
        raise _unusable(file, error) from None


def invalid(error: FileInvalid) -> Refused:
    """The refusal of a file, with its problems."""
    return Refused.invalid(Problem("", "file", problem) for problem in error.problems)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _unusable(file: str, error: Exception) -> Refused:
    reason = getattr(error, "strerror", None) or error
    facts = {"file": visible_text(file, 200), "error": visible_text(reason, 200)}
    return Refused(Code.INVALID, _("The file %(file)s cannot be used: %(error)s.") % facts)
