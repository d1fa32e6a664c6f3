"""How the log lines of a run reach the supervisor: through the pipe that is the child's standard error."""

from __future__ import annotations

import logging
import sys
from contextlib import suppress

from scheduling.conf import log_options
from scheduling.logs import OWN, level_name

LEVEL_MARK = "\x1e"
"""Encloses the level at the beginning of a logged line: LEVEL_MARK, level, LEVEL_MARK, text."""


class MarkedFormatter(logging.Formatter):
    """Formats log records for the supervisor."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the text of the record with its level before each line, including the lines of a traceback."""
        text = super().format(record)
        mark = f"{LEVEL_MARK}{level_name(record.levelno)}{LEVEL_MARK}"
        return "\n".join(mark + line for line in text.splitlines() or [""])


_FORMATTER = MarkedFormatter()


def leave_console() -> None:
    """Let no log handler write to the console any more. The project's other handlers, such as mail and files, stay.

    The forkserver does this before the first fork, because all children need it, and it takes a part of a millisecond.
    """
    root = logging.getLogger()
    for former in list(root.handlers):
        if _on_console(former):
            root.removeHandler(former)  # otherwise the output would have each line twice
        else:
            former.setLevel(max(former.level, root.level))  # it gets what it got before, also with a lower root level
    for logger in map(logging.getLogger, OWN):
        for former in [former for former in logger.handlers if _on_console(former)]:
            logger.removeHandler(former)
    root.setLevel(log_options()[1])


def log_to_pipe() -> None:
    """Send the lines of the root logger to `sys.stderr`, with their levels."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_FORMATTER)
    logging.getLogger().addHandler(handler)


def _on_console(handler: logging.Handler) -> bool:
    """Whether a log handler writes to standard output or standard error."""
    stream = getattr(handler, "stream", None)
    with suppress(Exception):
        return isinstance(handler, logging.StreamHandler) and stream is not None and stream.fileno() in (1, 2)
    return stream in (sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__)
