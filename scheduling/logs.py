"""One formatter gives every process's lines:

`2025-12-12T12:00:00.000Z [INFO] [type=report, id=25, scheduler_id=16] Processing task`

or, with LOG_FORMAT=json, an object a line. Context is bound once per run, and colours show on
a terminal only (NO_COLOR is honoured). ERROR is for what a person should look at.
"""

from __future__ import annotations

import json
import logging
import os
import sys
from collections.abc import Iterator, MutableMapping
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Any, TextIO

SUCCESS = 25
"""Between INFO and WARNING."""

logging.addLevelName(SUCCESS, "SUCCESS")

_NAMES = {logging.WARNING: "WARN", logging.CRITICAL: "ERROR"}
_COLOURS = {"DEBUG": "90", "INFO": "36", "SUCCESS": "32", "WARN": "33", "ERROR": "31"}

_context: ContextVar[dict[str, Any] | None] = ContextVar("log_context", default=None)


class RunLogger(logging.LoggerAdapter[logging.Logger]):
    """A logger with the seeds' fifth level, and context that goes on each line."""

    def success(self, message: object, *args: object, **kwargs: Any) -> None:
        """Log something that went well, at SUCCESS."""
        self.log(SUCCESS, message, *args, **kwargs)

    def process(self, msg: Any, kwargs: MutableMapping[str, Any]) -> tuple[Any, MutableMapping[str, Any]]:
        """Merge this logger's context with the call's `extra`."""
        kwargs["extra"] = {"context": {**(self.extra or {}), **(kwargs.get("extra") or {})}}
        return msg, kwargs


def get_logger(name: str, **context: Any) -> RunLogger:
    """A logger whose lines carry `context`, beside what is bound with `bound`."""
    return RunLogger(logging.getLogger(name), context)


@contextmanager
def bound(**context: Any) -> Iterator[None]:
    """Bind context to every line logged inside."""
    token = _context.set({**(_context.get() or {}), **context})
    try:
        yield
    finally:
        _context.reset(token)


def _context_of(record: logging.LogRecord) -> dict[str, Any]:
    return {**(_context.get() or {}), **getattr(record, "context", {})}


def level_name(levelno: int) -> str:
    """DEBUG, INFO, SUCCESS, WARN or ERROR."""
    return _NAMES.get(levelno) or logging.getLevelName(levelno)


def stamp(seconds: float) -> str:
    """Epoch seconds as `2025-12-12T12:00:00.000Z`."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


class LineFormatter(logging.Formatter):
    """The seeds' line; a stack trace follows as further stamped lines."""

    def __init__(self, colour: bool = False) -> None:
        super().__init__()
        self.colour = colour

    def format(self, record: logging.LogRecord) -> str:
        """One record as one or more lines."""
        level = level_name(record.levelno)
        shown = f"\x1b[{_COLOURS[level]}m[{level}]\x1b[0m" if self.colour and level in _COLOURS else f"[{level}]"
        head = f"{stamp(record.created)} {shown} "
        context = ", ".join(f"{name}={value}" for name, value in _context_of(record).items())
        lines = [f"{head}[{context}] {record.getMessage()}" if context else f"{head}{record.getMessage()}"]
        if record.exc_info and record.exc_info[0] is not None:
            lines.append(f"{head}Stack trace:")
            lines.append(self.formatException(record.exc_info))
        return "\n".join(lines)


class JsonFormatter(logging.Formatter):
    """One JSON object a line, for log collectors."""

    def format(self, record: logging.LogRecord) -> str:
        """One record as one line; what JSON cannot hold becomes text."""
        entry: dict[str, Any] = {
            "time": stamp(record.created),
            "level": level_name(record.levelno),
            "logger": record.name,
            "message": record.getMessage(),
            **_context_of(record),
        }
        if record.exc_info and record.exc_info[0] is not None:
            entry["traceback"] = self.formatException(record.exc_info)
        return json.dumps(entry, default=str, ensure_ascii=False)


def validate(format_: str, level: str) -> str:
    """The level's name as `logging` knows it.

    Raises:
        ValueError: for an unknown format or level.
    """
    if format_ not in {"text", "json"}:
        raise ValueError(f"LOG_FORMAT is {format_!r}; it must be text or json.")
    name = {"WARN": "WARNING"}.get(level.upper(), level.upper())
    if name not in logging.getLevelNamesMapping():
        raise ValueError(f"LOG_LEVEL is {level!r}; it must be DEBUG, INFO, SUCCESS, WARN or ERROR.")
    return name


def configure(format_: str = "text", level: str = "INFO", stream: TextIO | None = None) -> None:
    """Send every log record of this process to `stream` (default: standard error).

    Raises:
        ValueError: for an unknown format or level.
    """
    name = validate(format_, level)
    stream = stream or sys.stderr
    handler = logging.StreamHandler(stream)
    # `up` shows its children's lines on its own terminal and says so.
    wanted = stream.isatty() or os.environ.get("CRON_LOG_COLOUR") == "1"
    colour = wanted and "NO_COLOR" not in os.environ
    handler.setFormatter(JsonFormatter() if format_ == "json" else LineFormatter(colour))
    root = logging.getLogger()
    for former in list(root.handlers):
        root.removeHandler(former)
    root.addHandler(handler)
    root.setLevel(name)
