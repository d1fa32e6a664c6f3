"""The rules for the names of files that a handler attaches to its run."""

from __future__ import annotations

LONGEST_NAME = 100
LONGEST_EXTENSION = 10


class AttachmentError(ValueError):
    """A file cannot be attached to a run. The text says why."""


def checked_name(name: object) -> tuple[str, str]:
    """The name of a file, as stem and extension. A name without an extension, such as `Makefile`, is a stem.

    Raises:
        AttachmentError: the name is empty, too long, or contains characters that no name of a file has.
    """
    if not isinstance(name, str) or not name.strip(". "):
        raise AttachmentError(f"The file needs a name, such as name='invoice.pdf', not {name!r:.100}.")
    if len(name) > LONGEST_NAME:
        raise AttachmentError(f"The name has {len(name):,} characters; at most {LONGEST_NAME} are allowed.")
    if "/" in name or "\\" in name or not name.isprintable():
        raise AttachmentError(f"The name {name!r} has a slash or a control character. Give a name without a folder.")
    return split_name(name)


def split_name(name: str) -> tuple[str, str]:
    """Stem and extension of a name. An extension has at most ten ASCII letters and digits; otherwise it is empty."""
    stem, _, extension = name.rpartition(".")
    if stem and extension.isascii() and extension.isalnum() and len(extension) <= LONGEST_EXTENSION:
        return stem, extension.lower()
    return name, ""
