"""Formats the log lines of every process. A line looks like this:

`2025-12-12T12:00:00.000Z [INFO] [type=report, id=25, scheduler_id=16] Processing task`

The second pair of brackets holds the context of the line, such as the id of the schedule. With LOG_FORMAT=json, every
line is one JSON object. Lines are coloured only on a terminal, and never if NO_COLOR is set. The level ERROR means that
a person should look at the line.

A message may contain text from outside, and this text could imitate a log line. So in the text format, a message stays
on one line: a line feed is shown as `\\n`. The lines of a stack trace are indented.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Iterator, MutableMapping
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Any, TextIO

from scheduling.core.text import one_line, visible_text

SUCCESS = 25
"""A level between INFO and WARNING."""

logging.addLevelName(SUCCESS, "SUCCESS")

_NAMES = {logging.WARNING: "WARN", logging.CRITICAL: "ERROR"}
_INDENT = "    "
_COLOURS = {"DEBUG": "90", "INFO": "36", "SUCCESS": "32", "WARN": "33", "ERROR": "31"}

QUIET = ("django.db.backends", "pika", "asyncio")
"""Libraries whose lines at DEBUG would hide all others: each SQL statement of each poll, each frame to the broker."""

_context: ContextVar[dict[str, Any] | None] = ContextVar("log_context", default=None)


class RunLogger(logging.LoggerAdapter[logging.Logger]):
    """A logger that adds context to every line. It also has the level SUCCESS, between INFO and WARN."""

    def success(self, message: object, *args: object, **kwargs: Any) -> None:
        """Log a message at the level SUCCESS."""
        self.log(SUCCESS, message, *args, **kwargs)

    def process(self, msg: Any, kwargs: MutableMapping[str, Any]) -> tuple[Any, MutableMapping[str, Any]]:
        """Merge this logger's context with the call's `extra`. A text in `extra["stack_trace"]` follows the line."""
        context = {**(self.extra or {}), **(kwargs.get("extra") or {})}
        kwargs["extra"] = {"stack_trace": context.pop("stack_trace", ""), "context": context}
        return msg, kwargs


def get_logger(name: str, **context: Any) -> RunLogger:
    """A logger whose lines show `context` in addition to the context that `bound` has set."""
    return RunLogger(logging.getLogger(name), context)


@contextmanager
def bound(**context: Any) -> Iterator[None]:
    """Add context to every line that is logged inside the `with` block."""
    token = _context.set({**(_context.get() or {}), **context})
    try:
        yield
    finally:
        _context.reset(token)


class FailedElsewhere(Exception):
    """An error of another process, of which there is a text only. Its cause carries the text of the traceback.

    Our own formatters leave it out, because a line before it has shown the traceback.
    """


class TracebackText(Exception):
    """The cause of a `FailedElsewhere`: prints as the traceback of the other process."""

    def __str__(self) -> str:
        return f"\n{self.args[0]}"


def error_elsewhere(error_class: str, message: str, traceback: str) -> FailedElsewhere:
    """An exception for `exc_info`, so that the handlers of a project and collectors of errors see class and traceback.

    Args:
        error_class: the class of the error, with or without its module, such as `shop.errors.OutOfStock`.
    """
    module, _, name = error_class.rpartition(".")
    if not name.isidentifier():  # a message of another program may have any text here
        module, name = "", "Failed"
    kind = type(name, (FailedElsewhere,), {"__module__": module or "builtins"})
    error: FailedElsewhere = kind(message)
    if traceback:
        error.__cause__ = TracebackText(traceback)
    return error


def _context_of(record: logging.LogRecord) -> dict[str, Any]:
    return {**(_context.get() or {}), **getattr(record, "context", {})}


def level_name(levelno: int) -> str:
    """The level's name as log lines show it: DEBUG, INFO, SUCCESS, WARN or ERROR."""
    return _NAMES.get(levelno) or logging.getLevelName(levelno)


def iso_from_epoch(seconds: float) -> str:
    """Epoch seconds as `2025-12-12T12:00:00.000Z`."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _stack_trace(formatter: logging.Formatter, record: logging.LogRecord) -> str:
    """The stack trace of a record: its own error's, or the text that a child process has reported."""
    if record.exc_info and record.exc_info[0] is not None and not isinstance(record.exc_info[1], FailedElsewhere):
        return formatter.formatException(record.exc_info)
    return str(getattr(record, "stack_trace", ""))


JSON_LENGTH = 2_000


def short_json(value: Any) -> str:
    """A value as JSON in one line, cut after JSON_LENGTH characters. What JSON cannot represent becomes text."""
    text = json.dumps(value, default=str, ensure_ascii=False)
    return text if len(text) <= JSON_LENGTH else f"{text[:JSON_LENGTH]}…"


class LineFormatter(logging.Formatter):
    """Formats a record as the module's docstring shows. If there is a stack trace, it follows on indented lines."""

    def __init__(self, colour: bool = False) -> None:
        super().__init__()
        self.colour = colour

    def format(self, record: logging.LogRecord) -> str:
        """One record as one or more lines."""
        level = level_name(record.levelno)
        shown = f"\x1b[{_COLOURS[level]}m[{level}]\x1b[0m" if self.colour and level in _COLOURS else f"[{level}]"
        head = f"{iso_from_epoch(record.created)} {shown} "
        context = ", ".join(f"{name}={value}" for name, value in _context_of(record).items())
        message = one_line(record.getMessage())
        lines = [f"{head}[{one_line(context)}] {message}" if context else f"{head}{message}"]
        if trace := visible_text(_stack_trace(self, record)):
            lines += [f"{head}Stack trace:", *(f"{_INDENT}{line}" for line in trace.split("\n"))]
        return "\n".join(lines)


class JsonFormatter(logging.Formatter):
    """Formats a record as one line with a JSON object, for log collectors."""

    def format(self, record: logging.LogRecord) -> str:
        """One record as one line. Values that JSON cannot represent become text."""
        entry: dict[str, Any] = {
            "time": iso_from_epoch(record.created),
            "level": level_name(record.levelno),
            "logger": record.name,
            "message": record.getMessage(),
            **_context_of(record),
        }
        if trace := _stack_trace(self, record):
            entry["traceback"] = trace
        return json.dumps(entry, default=str, ensure_ascii=False)


def validate(
    format_: str, level: str | int, format_setting: str = "CRON_LOG_FORMAT", level_setting: str = "CRON_LOG_LEVEL"
) -> str:
    """Check the format and the level. Returns the level's name in capital letters.

    Args:
        level: a name, or a number such as `logging.INFO`.
        format_setting: the name of the setting, for the text of the error.

    Raises:
        ValueError: for an unknown format or level.
    """
    if format_ not in {"text", "json"}:
        raise ValueError(f"{format_setting} is {format_!r}; it must be text or json.")
    known = logging.getLevelNamesMapping()
    text = str(level).strip().upper()
    name = logging.getLevelName(int(text)) if text.isdecimal() else text
    if name not in known:
        raise ValueError(f"{level_setting} is {level!r}; it must be DEBUG, INFO, SUCCESS, WARN or ERROR.")
    return str(name)


OWN = ("scheduling", "reports")
"""The loggers of our two apps."""


def configure(format_: str = "text", level: str | int = "INFO", stream: TextIO | None = None) -> None:
    """Send every log record of this process to `stream` (default: standard error).

    Raises:
        ValueError: for an unknown format or level.
    """
    name = validate(format_, level)
    logging.basicConfig(handlers=[_handler(format_, stream)], level=name, force=True)
    for library in QUIET:
        if logging.getLogger(library).level == logging.NOTSET:
            logging.getLogger(library).setLevel(logging.INFO)


def configure_unheard(format_: str = "text", level: str | int = "INFO", stream: TextIO | None = None) -> None:
    """Send the records of our two apps to `stream`, as far as the project has no handler for them.

    Django's default configuration has none: without this, `run_worker` would print nothing. The handlers, levels and
    loggers of the project stay as they are.

    Raises:
        ValueError: for an unknown format or level.
    """
    name = validate(format_, level)
    for logger in map(logging.getLogger, OWN):
        if logger.hasHandlers() or not logger.propagate or logger.disabled:
            continue
        logger.addHandler(_handler(format_, stream))
        if logger.level == logging.NOTSET:
            logger.setLevel(name)


def _handler(format_: str, stream: TextIO | None) -> logging.Handler:
    handler = logging.StreamHandler(stream)
    # The child processes of `manage.py up` write to a pipe, and `up` prints their lines on its terminal. If `up` prints
    # colours, it sets CRON_LOG_COLOUR to 1 for the processes that it starts.
    wanted = handler.stream.isatty() or os.environ.get("CRON_LOG_COLOUR") == "1"
    colour = wanted and "NO_COLOR" not in os.environ
    handler.setFormatter(JsonFormatter() if format_ == "json" else LineFormatter(colour))
    return handler
