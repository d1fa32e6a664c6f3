"""Sends what a handler prints and logs to its run, as the pipe of a child does."""

from __future__ import annotations

import io
import logging
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from scheduling.conf import log_options
from scheduling.consumer.child_logging import MarkedFormatter


class _Sink(io.RawIOBase):
    def __init__(self, feed: Callable[[bytes], object]) -> None:
        self._feed = feed

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self._feed(bytes(data))
        return len(data)


@contextmanager
def captured(feed: Callable[[bytes], object]) -> Iterator[None]:
    """Give `feed` all bytes that are printed or logged inside the `with` block.

    The log handlers of the test stay. What programs print that the handler starts is not captured: they write to the
    descriptors of the test's process.
    """
    stream = io.TextIOWrapper(
        io.BufferedWriter(_Sink(feed)), encoding="utf-8", errors="backslashreplace", line_buffering=True
    )
    handler = logging.StreamHandler(stream)
    handler.setFormatter(MarkedFormatter())
    root, streams, level = logging.getLogger(), (sys.stdout, sys.stderr), logging.getLogger().level
    root.addHandler(handler)
    root.setLevel(log_options()[1])
    sys.stdout = sys.stderr = stream
    try:
        yield
    finally:
        sys.stdout, sys.stderr = streams
        root.removeHandler(handler)
        root.setLevel(level)
        with suppress(ValueError):  # the handler may have closed the stream
            stream.flush()


@contextmanager
def kept_environment() -> Iterator[None]:
    """Restore the environment variables, as a child does after each run."""
    before = dict(_raw_environment())
    try:
        yield
    finally:
        if _raw_environment() != before:
            os.environb.clear()
            os.environb.update(before)


def _raw_environment() -> dict[bytes, bytes]:
    """The mapping inside `os.environ`. Reading it through `os.environ` would decode each name and value."""
    found: dict[bytes, bytes] = vars(os.environb)["_data"]
    return found
