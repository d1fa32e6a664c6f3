"""Notes the newest beat in a file, so that a database is told from its backup while all processes are stopped."""

from __future__ import annotations

import json
import os
import tempfile
from contextlib import suppress

from scheduling.conf import get_conf
from scheduling.core.deployment import KEPT_TIMELINES, Note, decode_note
from scheduling.logs import get_logger

log = get_logger(__name__)


def read_notes() -> list[Note]:
    """The notes of the file, the newest first; an empty list if there is no file or if it is damaged."""
    path = get_conf().beat_file
    try:
        with open(path, encoding="utf-8") as file:
            lines = json.load(file)
    except (OSError, ValueError, RecursionError):
        return []
    found = [decode_note(line) for line in lines if isinstance(line, str)] if isinstance(lines, list) else []
    return [note for note in found if note is not None]


def write_note(note: Note) -> None:
    """Note a beat. The file keeps the newest note of each of the last timelines.

    The file is replaced in one step. If it cannot be written, the notes of the broker and of this process remain.
    """
    path = get_conf().beat_file
    if not path:
        return
    others = [known for known in read_notes() if known.timeline != note.timeline]
    kept = [note, *others][:KEPT_TIMELINES]
    try:
        number, made = tempfile.mkstemp(dir=os.path.dirname(path) or ".", prefix=".beat-")
    except OSError as error:
        log.debug("The beat cannot be noted in %s: %s", path, error)
        return
    try:
        with os.fdopen(number, "w", encoding="utf-8") as file:
            json.dump([known.encode().decode() for known in kept], file)
        os.replace(made, path)
    except OSError as error:
        log.debug("The beat cannot be noted in %s: %s", path, error)
        with suppress(OSError):
            os.unlink(made)
