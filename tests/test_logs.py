"""Log lines: the seeds' form, JSON, colours on a terminal only, context bound once."""

from __future__ import annotations

import io
import json
import logging
import re
from collections.abc import Iterator

import pytest

from scheduling import logs


@pytest.fixture(autouse=True)
def restore() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)


class Terminal(io.StringIO):
    """A stream that says it is one."""

    def isatty(self) -> bool:
        """Yes."""
        return True


def test_the_seeds_line() -> None:
    stream = io.StringIO()
    logs.configure(stream=stream)
    logs.get_logger("x", type="report", id=25, scheduler_id=16).info("Processing task")
    assert re.fullmatch(
        r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z \[INFO\] \[type=report, id=25, scheduler_id=16\] Processing task\n",
        stream.getvalue(),
    )


def test_levels_and_their_names() -> None:
    stream = io.StringIO()
    logs.configure(level="DEBUG", stream=stream)
    log = logs.get_logger("x")
    for write in (log.debug, log.info, log.success, log.warning, log.error):
        write("m")
    assert re.findall(r"\[([A-Z]+)\]", stream.getvalue()) == ["DEBUG", "INFO", "SUCCESS", "WARN", "ERROR"]


def test_colours_on_a_terminal_unless_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    stream = Terminal()
    logs.configure(stream=stream)
    logs.get_logger("x").success("m")
    assert "\x1b[32m[SUCCESS]\x1b[0m" in stream.getvalue()
    monkeypatch.setenv("NO_COLOR", "1")
    plain = Terminal()
    logs.configure(stream=plain)
    logs.get_logger("x").success("m")
    assert "\x1b" not in plain.getvalue()


def test_context_is_bound_once_and_unbound() -> None:
    stream = io.StringIO()
    logs.configure(stream=stream)
    with logs.bound(run=7):
        logs.get_logger("x").info("in", extra={"a": 1})
    logs.get_logger("x").info("out")
    inside, outside = stream.getvalue().splitlines()
    assert "[run=7, a=1] in" in inside
    assert outside.endswith("[INFO] out")


def test_a_stack_trace_follows() -> None:
    stream = io.StringIO()
    logs.configure(stream=stream)
    try:
        raise ValueError("boom")
    except ValueError:
        logs.get_logger("x").exception("Task failed")
    text = stream.getvalue()
    assert "[ERROR] Stack trace:\nTraceback" in text
    assert "ValueError: boom" in text


def test_json_is_one_object_a_line() -> None:
    stream = io.StringIO()
    logs.configure("json", stream=stream)
    try:
        raise ValueError("two\nlines")
    except ValueError:
        logs.get_logger("x", obj=object()).exception("failed\nbadly")
    (line,) = stream.getvalue().splitlines()
    entry = json.loads(line)
    assert (entry["level"], entry["message"]) == ("ERROR", "failed\nbadly")
    assert "ValueError" in entry["traceback"]
