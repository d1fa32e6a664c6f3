"""The tests check log lines: the text format and the JSON format, colours, context and stack traces."""

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
    """A stream that looks like a terminal."""

    def isatty(self) -> bool:
        """Return true."""
        return True


def test_log_line_has_the_original_form() -> None:
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


def test_each_level_has_the_colour_of_the_original(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    stream = Terminal()
    logs.configure(level="DEBUG", stream=stream)
    log = logs.get_logger("x")
    for write in (log.debug, log.info, log.success, log.warning, log.error):
        write("m")
    grey, cyan, green, yellow, red = "90", "36", "32", "33", "31"
    assert re.findall(r"\x1b\[(\d+)m\[([A-Z]+)\]\x1b\[0m", stream.getvalue()) == [
        (grey, "DEBUG"), (cyan, "INFO"), (green, "SUCCESS"), (yellow, "WARN"), (red, "ERROR"),
    ]  # fmt: skip


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


def test_bound_context_is_on_every_line_until_it_ends() -> None:
    stream = io.StringIO()
    logs.configure(stream=stream)
    with logs.bound(run=7):
        logs.get_logger("x").info("in", extra={"a": 1})
    logs.get_logger("x").info("out")
    inside, outside = stream.getvalue().splitlines()
    assert "[run=7, a=1] in" in inside
    assert outside.endswith("[INFO] out")


def test_a_stack_trace_follows_the_error() -> None:
    stream = io.StringIO()
    logs.configure(stream=stream)
    try:
        raise ValueError("boom")
    except ValueError:
        logs.get_logger("x").exception("Task failed")
    text = stream.getvalue()
    assert "[ERROR] Stack trace:\n    Traceback" in text
    assert "ValueError: boom" in text


FORGED = "x\r\n2026-01-01T00:00:00.000Z [ERROR] PERMANENTLY FAILED TASK: forged\x1b[31m\u2028\x85\x0b\x0c\r\u202e"


def test_text_cannot_forge_a_record_or_control_the_terminal() -> None:
    stream = io.StringIO()
    logs.configure(stream=stream)
    log = logs.get_logger("x", key=FORGED)
    log.warning("failed: %s", FORGED)
    try:
        raise ValueError(FORGED)
    except ValueError:
        log.exception("failed")
    written = stream.getvalue()
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u202e]", written)
    records = [line for line in written.splitlines() if not line.startswith("    ")]
    assert [re.search(r"\[([A-Z]+)\]", line)[1] for line in records] == ["WARN", "ERROR", "ERROR"]  # type: ignore[index]
    assert r"failed: x\n2026-01-01T00:00:00.000Z [ERROR] PERMANENTLY FAILED TASK: forged\x1b[31m" in records[0]
    assert r"[key=x\n2026-01-01" in records[0]
    assert "\n    2026-01-01T00:00:00.000Z [ERROR] PERMANENTLY" in written


def test_a_json_record_is_one_line() -> None:
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


def test_a_trace_from_another_process_follows_the_line() -> None:
    for format_ in ("text", "json"):
        stream = io.StringIO()
        logs.configure(format_, stream=stream)
        logs.get_logger("x").warning("it failed", extra={"id": 3, "stack_trace": "Traceback:\n  line\x1b[31m"})
        lines = stream.getvalue().splitlines()
        if format_ == "json":
            assert json.loads(lines[0])["traceback"] == "Traceback:\n  line\x1b[31m"
            assert "stack_trace" not in lines[0]
        else:
            assert lines[0].endswith("[WARN] [id=3] it failed")
            assert lines[1].endswith("[WARN] Stack trace:")
            assert lines[2:] == ["    Traceback:", "      line\\x1b[31m"]


def test_debug_leaves_the_lines_of_libraries_out(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.StringIO()
    for name in logs.QUIET:
        # `setLevel` clears a cache, and afterwards the former level is set again, for the tests that follow.
        monkeypatch.setattr(logging.getLogger(name), "level", logging.getLogger(name).level)
        logging.getLogger(name).setLevel(logging.NOTSET)
    logs.configure(level="DEBUG", stream=stream)
    logging.getLogger("django.db.backends").debug("(0.000) SELECT 1")
    logging.getLogger("pika.connection").debug("a frame")
    logging.getLogger("your_app").debug("own line")
    assert [line.partition("] ")[2] for line in stream.getvalue().splitlines()] == ["own line"]


def test_json_in_a_line_is_short() -> None:
    assert logs.short_json({"a": object, "ä": 1}).startswith('{"a": "<class')
    assert len(logs.short_json({"a": "x" * 10_000})) == logs.JSON_LENGTH + 1


def own_loggers() -> list[logging.Logger]:
    return [logging.getLogger(name) for name in logs.OWN]


def test_an_error_of_another_process_has_its_class_and_its_traceback_for_every_formatter() -> None:
    error = logs.error_elsewhere("shop.errors.OutOfStock", "no paper", "Traceback:\n  in sell")
    record = logging.LogRecord("x", logging.ERROR, "", 0, "it failed", (), (type(error), error, None))
    text = logging.Formatter().format(record)
    assert text.startswith("it failed\n")
    assert "Traceback:\n  in sell" in text
    assert text.endswith("shop.errors.OutOfStock: no paper")
    assert "Stack trace" not in logs.LineFormatter().format(record)  # the line before it has shown it
    assert "traceback" not in json.loads(logs.JsonFormatter().format(record))


@pytest.mark.parametrize("name", ["", "\x00", "no class", "\ud800", "a.b c", "x" * 10_000])
def test_a_class_of_any_name_can_be_told(name: str) -> None:
    error = logs.error_elsewhere(name, "said", "")
    assert str(error) == "said"
    assert type(error).__name__.isidentifier()
    assert error.__cause__ is None


def test_only_unheard_loggers_get_a_handler() -> None:
    root = logging.getLogger()
    former = [(logger, list(logger.handlers), logger.level) for logger in (root, *own_loggers())]
    stream = io.StringIO()
    try:
        root.handlers[:] = []
        logs.configure_unheard(stream=stream)
        logs.configure_unheard(stream=stream)  # twice makes no second handler
        logs.get_logger("scheduling.x").info("heard")
        logging.getLogger("reports").info("heard, too")
        logging.getLogger("shop").info("of the project")
        assert [line.partition("] ")[2] for line in stream.getvalue().splitlines()] == ["heard", "heard, too"]
    finally:
        for logger, handlers, level in former:
            logger.handlers[:] = handlers
            logger.setLevel(level)
    with_handler = [len(logger.handlers) for logger in own_loggers()]
    logs.configure_unheard(stream=stream)  # the root logger of the tests has handlers
    assert [len(logger.handlers) for logger in own_loggers()] == with_handler
