"""The secret parameters of a run stay masked in its output, its error and its progress."""

from __future__ import annotations

import itertools
import logging
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduling.consumer.child_secrets import masked_log
from scheduling.consumer.output import OutputBuffer
from scheduling.consumer.secret_filter import LONGEST, SHORTEST, SecretFilter, secret_values
from scheduling.handlers.registry import find
from scheduling.handlers.secret_headers import masked_headers, secret_header_values
from scheduling.handlers.secret_params import MASK
from scheduling.logs import JsonFormatter, LineFormatter
from scheduling.models import Attempt, Output, SchedulerExecution
from tests.factories import ManualExecutionFactory, SchedulerFactory
from tests.support import Commands, examples

KEY = "-----BEGIN KEY-----\nabcdefgh12345678\nzyxwvut987654321\n-----END KEY-----"


def through(values: list[str], pieces: list[bytes]) -> bytes:
    found = SecretFilter(values)
    return b"".join([*(found.feed(piece) for piece in pieces), found.rest()])


@examples(500)
@given(
    values=st.lists(st.text(alphabet="abé", min_size=SHORTEST, max_size=9), min_size=1, max_size=4),
    parts=st.lists(st.text(alphabet="abé-\n", max_size=9) | st.integers(0, 3), max_size=9),
    cuts=st.lists(st.integers(0, 120), max_size=9),
)
def test_no_way_of_writing_in_pieces_shows_a_value(values: list[str], parts: list[str | int], cuts: list[int]) -> None:
    text = "".join(part if isinstance(part, str) else values[part % len(values)] for part in parts).encode()
    places = sorted({0, *(cut for cut in cuts if cut < len(text)), len(text)})
    pieces = [text[start:end] for start, end in itertools.pairwise(places)]
    found = through(values, pieces)
    assert not any(value.encode() in found for value in values)
    assert found == SecretFilter(values).text(text.decode()).encode() or len(values) > 1


def test_the_texts_of_a_secret_parameter() -> None:
    handler = find("worker", "tests.keep")
    assert secret_values(handler, {"token": "abc", "days": 30}) == []  # too short
    values = secret_values(handler, {"token": KEY, "days": 30})
    assert {KEY, "abcdefgh12345678", "zyxwvut987654321", KEY.replace("\n", "\\n")} <= set(values)
    assert secret_values(handler, {"token": 'p"ä/1'}) == sorted(
        {'p"ä/1', 'p\\"\\u00e4/1', "p%22%C3%A4%2F1"}, key=lambda text: (-len(text), text)
    )
    assert max(map(len, secret_values(handler, {"token": "x" * 10_000}))) == LONGEST
    assert secret_values(None, {"token": "hunter2"}) == []


def test_the_texts_of_a_secret_header() -> None:
    headers = {"Authorization": "Bearer hunter2", "X-Api-Key": "k", "Set-Cookie": "", "trace": "4bf92f"}
    assert secret_header_values(headers) == ["", "Bearer hunter2", "hunter2", "k"]
    assert masked_headers(headers) == {
        "Authorization": MASK, "X-Api-Key": MASK, "Set-Cookie": "", "trace": "4bf92f",
    }  # fmt: skip


def test_output_that_is_cut_in_the_middle_of_a_secret_stays_masked() -> None:
    buffer = OutputBuffer(100_000, None, SecretFilter(["hunter2-and-more"]))
    line = b"x" * 16_380 + b"hunter2-and-more\n"
    for start in range(0, len(line), 7):
        buffer.feed(line[start : start + 7], 0.0)
    stored = buffer.take() + buffer.finish(0.0)
    assert "hunter2" not in stored
    assert MASK[:3] in stored


def test_the_end_of_a_long_output_is_masked_too() -> None:
    buffer = OutputBuffer(2_000, None, SecretFilter(["hunter2-and-more"]))
    for number in range(1_000):
        buffer.feed(f"line {number} hunter2-and-more\n".encode(), 0.0)
    buffer.finish(0.0)
    assert buffer.tail is not None
    assert not any("hunter2" in text for _sequence, text in buffer.tail.unstored(0.0))


@pytest.mark.parametrize("members", [False, True], ids=["run", "batch"])
def test_the_log_handlers_of_a_project_get_no_secret(caplog: pytest.LogCaptureFixture, members: bool) -> None:
    facts = {"headers": {"Authorization": "Bearer hunter3-and-more"}}
    run = {"params": {"token": "hunter2-and-more", "days": 12_345}, "run": facts}
    task: dict[str, Any] = {"type": "worker", "handler": "tests.keep", "target_params": {}, **run}
    if members:
        task = {**task, "params": {}, "run": {}, "members": [run]}
    log, born = logging.getLogger("orders"), logging.getLogRecordFactory()
    with masked_log(task):
        log.warning("token %s of %s days", "hunter2-and-more", 12_345)
        log.warning("header hunter3-and-more")
        log.warning("nothing %s", "secret")
        try:
            raise LookupError("no hunter2-and-more")
        except LookupError:
            log.exception("it failed", stack_info=True)
    assert logging.getLogRecordFactory() is born
    token, header, plain, failed = caplog.records
    assert token.getMessage() == f"token {MASK} of 12345 days"
    assert header.getMessage() == f"header {MASK}"
    assert (plain.msg, plain.args) == ("nothing %s", ("secret",))
    for formatter in (logging.Formatter(), LineFormatter(), JsonFormatter()):
        text = formatter.format(failed)
        assert "hunter2" not in text
        assert f"LookupError: no {MASK}" in text
        assert text.count("raise LookupError") == 1
    assert failed.exc_info is not None
    assert (type(failed.exc_info[1]).__name__, str(failed.exc_info[1])) == ("LookupError", f"no {MASK}")


def test_a_run_without_secrets_keeps_the_records_as_they_are() -> None:
    born = logging.getLogRecordFactory()
    with masked_log({"type": "worker", "handler": "tests.noop", "target_params": None, "params": {}, "run": {}}):
        assert logging.getLogRecordFactory() is born


@pytest.mark.processes
@pytest.mark.any_database
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("handler", ["tests.tell_secret", "tests.tell_secret_fresh"])
def test_a_run_that_tells_its_secret(commands: Commands, handler: str) -> None:
    params = {"token": f"hunter2-and-more\n{KEY}", "days": 3}
    schedule = SchedulerFactory(rare=True, handler=handler, params=params, max_retries=0)
    run = ManualExecutionFactory(scheduler=schedule, params=params)
    worker = commands.start("run_worker", "--max-runs", "1", LOG_LEVEL="DEBUG")
    assert worker.wait(90) == 0, commands.log(worker)
    row, attempt = SchedulerExecution.objects.get(pk=run.pk), Attempt.objects.get(execution=run.pk)
    output = "".join(Output.objects.filter(execution=run.pk).values_list("text", flat=True))
    assert row.state == "failed"
    errors = (row.error_message, attempt.error_message, attempt.traceback)
    for text in (output, *errors, row.progress, commands.log(worker)):
        assert "hunter2" not in text
        assert "abcdefgh12345678" not in text
    assert f"printed {MASK}" in output
    assert f"logged {MASK}" in output
    assert f"refused: {MASK}" in row.error_message
    assert row.progress == f"1/3 {MASK}"
    assert "the visible end" in output
