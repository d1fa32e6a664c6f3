"""Tells whether two names or descriptors belong to the same file."""

from __future__ import annotations

import os

FileIdentity = tuple[int, int]
"""Device and inode of a file."""


def file_identity(file: int | str) -> FileIdentity | None:
    """The identity of an open descriptor, or of the file at a path; None if there is no such file."""
    try:
        found = os.stat(file)
    except OSError:
        return None
    return found.st_dev, found.st_ino
