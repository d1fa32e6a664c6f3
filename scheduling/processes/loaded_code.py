"""Compares the files of the modules that this process has loaded with the files on disk now.

A process keeps the code that it has loaded until it ends. If a file changes afterwards, the process runs old code.

Only the project's own files are watched: no module of the standard library, and no installed package. Changes are found
by the time of the last change of a file (mtime). The times are the file system's.
"""

from __future__ import annotations

import os
import sys
import sysconfig
import time
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime

LOOK_SECONDS = 10.0
"""The shortest time between two looks at the files."""

MOST_FILES = 4_000
"""At most this many files are watched. One look at so many files takes a few milliseconds."""

INSTALLED = ("site-packages", "dist-packages")

EXIT_NEW_CODE = 85
"""The exit code of a process that ended by itself so that its next start loads the new code. No shell uses it."""


class LoadedCode:
    """The files of this process's modules, with their times when the process loaded them.

    Make it before other processes are started that load the same modules: a file that changes later counts as changed.

    Args:
        modules: names of modules that are watched even if they belong to an installed package.

    Attributes:
        changed_at: when the newest of the changed files changed; None if all files are as they were loaded.
    """

    def __init__(self, modules: Iterable[str] = ()) -> None:
        self._extra = tuple(modules)
        self._files: dict[str, float] = {}  # path -> mtime when the module was loaded
        self._known = 0
        self._looked_at = -LOOK_SECONDS
        self._learn()
        self._newest = max(self._files.values(), default=0.0)
        self._made_at = time.time()
        self.changed: list[str] = []
        self.changed_at: datetime | None = None

    @property
    def loaded_at(self) -> datetime | None:
        """When the newest of the loaded files was changed last; None if no file is watched."""
        return _instant(self._newest, self._made_at) if self._files else None

    def look(self, monotonic: float, every: float = LOOK_SECONDS) -> bool:
        """Look at the files, if the last look is at least `every` seconds ago. Returns whether a file has changed."""
        if monotonic - self._looked_at >= every:
            self._looked_at = monotonic
            self._learn()
            found = [path for path, before in self._files.items() if (_mtime(path) or before) != before]
            self.changed = found
            self.changed_at = max((_changed_at(path) for path in found), default=None)
        return self.changed_at is not None

    def problem(self) -> str:
        """Why the changed files cannot be loaded, in one line; empty if they can be compiled.

        An editor may have written one half of a file, or a person may have saved it with a mistake in it.
        """
        for path in self.changed:
            try:
                with open(path, "rb") as file:
                    compile(file.read(), path, "exec", dont_inherit=True)
            except SyntaxError as error:
                return f"{os.path.basename(path)}, line {error.lineno}: {error.msg}"
            except (OSError, ValueError) as error:  # ValueError: the file contains a null byte
                return f"{os.path.basename(path)}: {error}"
        return ""

    def _learn(self) -> None:
        """Remember the files of modules that were imported since the last look."""
        if len(sys.modules) == self._known:
            return
        self._known = len(sys.modules)
        for path in _own_files(self._extra):
            if len(self._files) >= MOST_FILES:
                return
            if path not in self._files and (mtime := _mtime(path)) is not None:
                self._files[path] = mtime


def _own_files(extra: Iterable[str]) -> Iterator[str]:
    """The source files of the modules `extra`, then those of all modules outside of the installed packages."""
    for name in extra:
        if path := _file_of(sys.modules.get(name)):
            yield path
    paths = sysconfig.get_paths()
    library = tuple({paths["stdlib"] + os.sep, paths["platstdlib"] + os.sep})
    for module in list(sys.modules.values()):
        path = _file_of(module)
        if path and not path.startswith(library) and not any(f"{os.sep}{part}{os.sep}" in path for part in INSTALLED):
            yield path


def _file_of(module: object) -> str:
    """The absolute path of a module's source file; empty if the module has none, such as a built-in one."""
    try:
        path = getattr(module, "__file__", None)
    except Exception:  # a lazy module may raise anything
        return ""
    return os.path.abspath(path) if isinstance(path, str) and path.endswith(".py") else ""


def _mtime(path: str) -> float | None:
    """The time of a file's last change; None if the file is deleted or cannot be reached."""
    try:
        return os.stat(path).st_mtime
    except (OSError, ValueError):
        return None


def _changed_at(path: str) -> datetime:
    """When the file got its present content. The mtime may be any time, because a copy can keep that of its source."""
    try:
        changed = os.stat(path).st_ctime
    except (OSError, ValueError):
        changed = time.time()
    return _instant(changed, time.time())


def _instant(seconds: float, latest: float) -> datetime:
    """The time as an instant. A time in the future becomes `latest`, and one before 1970 becomes 1970."""
    return datetime.fromtimestamp(min(max(seconds, 0.0), latest), UTC)
