"""A file that appears under its name only when it is complete."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO


@contextmanager
def complete_file(path: Path) -> Iterator[IO[bytes]]:
    """Open a new binary file beside `path`. At the end of the `with` block, the file gets the name `path`.

    If the block raises any error, also KeyboardInterrupt, the new file is removed, and a file that was at `path` stays
    as it was. If SIGKILL ends the process, the file `.report-….part` stays in the folder.

    Raises:
        OSError: the folder does not exist, or the file cannot be written there.
    """
    partial = path.with_name(f".report-{secrets.token_hex(8)}.part")
    try:
        with partial.open("x+b") as file:
            yield file
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
