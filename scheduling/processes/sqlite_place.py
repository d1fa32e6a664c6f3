"""Where the file of a SQLite database is: in memory, on this host, or on a network."""

from __future__ import annotations

from pathlib import Path

NETWORK = frozenset(
    {"nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "afs", "ceph", "lustre", "glusterfs", "fuse.sshfs", "fuse.glusterfs"}
)
"""Network file systems. The journal mode WAL does not work on them, because WAL needs locks and memory that different
hosts cannot share."""


def in_memory(name: str) -> bool:
    """Whether a database of this name is in memory."""
    return not name or name == ":memory:" or "mode=memory" in name


def file_system(file: Path, mounts: Path = Path("/proc/self/mounts")) -> str:
    """The type of the file system that holds the file; empty if the type is unknown."""
    try:
        # The kernel writes the names of places as they are, in any encoding.
        lines = mounts.read_text("utf-8", "surrogateescape").split("\n")
        resolved = file.resolve()
    except (OSError, RuntimeError):  # RuntimeError: links that form a circle
        return ""
    found, depth = "", -1
    for line in filter(None, lines):
        _device, point, kind, *_rest = line.split(" ")
        path = Path(point.replace("\\040", " "))
        # If two file systems are mounted at the same place, the later mount hides the earlier mount.
        if resolved.is_relative_to(path) and len(path.parts) >= depth:
            found, depth = kind, len(path.parts)
    return found
