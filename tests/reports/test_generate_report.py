"""`manage.py generate_report` writes a report to standard output or to files, and records nothing."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from pydantic import BaseModel, Field

from reports.models import Report
from reports.registry import report
from scheduling.handlers import NonRetryableError, Run
from scheduling.models import Artefact, SchedulerExecution
from tests.reports.support import Numbers
from tests.support import ROOT, Commands, wait_for

CSV = b"\xef\xbb\xbfname,total\r\none,1\r\ntwo,2\r\n"

pytestmark = pytest.mark.django_db


class DaysParams(BaseModel):
    """A params model with a bound."""

    days: int = Field(7, ge=1, le=90)
    broken: str = ""


class Named(Numbers):
    """A report whose file has a fixed name, and which fails after its second row if it is asked to."""

    def filename(self, params: Any, run: Run) -> str:
        return "numbers"

    def rows(self, params: Any, run: Run) -> Iterator[Any]:
        yield from super().rows(params, run)
        if params.broken:
            raise {"key": KeyboardInterrupt, "final": NonRetryableError}.get(params.broken, ConnectionError)("gone")


class Both(Named):
    """A report with two files."""

    formats = ("csv", "jsonl")


class Terminal(io.TextIOWrapper):
    """A stream that says that it is a terminal."""

    def __init__(self) -> None:
        super().__init__(io.BytesIO(), encoding="utf-8", newline="", write_through=True)

    def isatty(self) -> bool:
        return True

    def getvalue(self) -> str:
        """Return the text that was written."""
        assert isinstance(self.buffer, io.BytesIO)
        return self.buffer.getvalue().decode()


class Output:
    """What one call of the command has written."""

    def __init__(self, *arguments: str, terminal: bool = False) -> None:
        binary = io.BytesIO()
        self.messages: Terminal | io.StringIO = Terminal() if terminal else io.StringIO()
        text = io.TextIOWrapper(binary, encoding="utf-8", newline="")
        call_command("generate_report", *arguments, stdout=text, stderr=self.messages)
        self.written = binary.getvalue()


@pytest.fixture(autouse=True)
def place(own_registry: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Register the reports, and use a folder of this test as the current folder. Return this folder."""
    report("tests.named", params=DaysParams)(Named)
    report("tests.both", params=DaysParams)(Both)
    folder = tmp_path / "here"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


def names(folder: Path) -> list[str]:
    """Return the sorted names of the files in a folder."""
    return sorted(path.name for path in folder.iterdir())


def refused(*arguments: str) -> str:
    """Check that the command fails with these arguments, and return the error."""
    with pytest.raises(CommandError) as caught:
        Output(*arguments)
    return str(caught.value)


@pytest.mark.parametrize("arguments", [(), ("--output", "-")])
def test_one_format_goes_to_standard_output(arguments: tuple[str, ...], place: Path, media: Path) -> None:
    output = Output("tests.named", *arguments)
    assert output.written == CSV
    assert output.messages.getvalue() == "No execution is recorded.\nWrote 2 rows to standard output.\n"
    assert (names(place), media.exists()) == ([], False)
    assert (SchedulerExecution.objects.count(), Artefact.objects.count()) == (0, 0)


def test_several_formats_go_to_files_in_the_current_folder(place: Path) -> None:
    output = Output("tests.both")
    assert output.written == b""
    assert (place / "numbers.csv").read_bytes() == CSV
    assert names(place) == ["numbers.csv", "numbers.jsonl"]
    assert output.messages.getvalue().endswith("Wrote 2 rows to numbers.csv, numbers.jsonl.\n")


def test_the_format_can_be_chosen() -> None:
    output = Output("tests.both", "--format", "json")
    assert json.loads(output.written) == [{"name": "one", "total": 1}, {"name": "two", "total": 2}]


def test_a_file_or_a_folder_can_be_chosen(place: Path) -> None:
    folder = place / "folder"
    folder.mkdir()
    (place / "own.xlsx").write_bytes(b"old")
    Output("tests.named", "--format", "xlsx", "--output", "own.xlsx")
    assert (place / "own.xlsx").read_bytes().startswith(b"PK")
    Output("tests.both", "--output", str(folder))
    assert names(folder) == ["numbers.csv", "numbers.jsonl"]


def test_the_options_of_the_delivery_apply(place: Path) -> None:
    delivery = {"format": "jsonl", "filename": "../sales", "recipients": ["ann@example.com"]}
    output = Output(
        "tests.both", "--params", json.dumps({"options_interface": {"delivery": delivery}}), "--output", "."
    )
    assert names(place) == ["sales.jsonl"]
    assert "Nothing is mailed to ann@example.com.\n" in output.messages.getvalue()


def test_the_params_of_the_row_apply_and_can_be_replaced() -> None:
    Report.objects.create(controller="tests.named", params={"days": 300})
    assert refused("tests.named") == "days: must be at most 90"
    assert Output("tests.named", "--params", '{"days": 90}').written == CSV


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["tests.namde"], 'There is no report "tests.namde". Similar reports: tests.named'),
        (["x"], 'There is no report "x". Reports: RefreshUserToken, failure_review, tests.both'),
        (["tests.named", "--params", "{"], "--params is not JSON: "),
        (["tests.named", "--params", "[" * 100_000], "--params is not JSON: "),
        (["tests.named", "--params", "[1]"], "--params must be a JSON object"),
        (
            ["tests.named", "--params", '{"days": 0, "broken": 7}'],
            "days: must be at least 1\nbroken: must be a text",
        ),
        (
            ["tests.named", "--params", '{"options_interface": {"delivery": {"to": "a"}}}'],
            'options_interface.delivery: there is no option "to". Known options: instant, format',
        ),
        (["tests.named", "--format", "pdf"], "invalid choice: 'pdf'"),
        (["tests.both", "--output", "-"], "Standard output takes one format. Choose it with --format: csv, jsonl."),
        (["tests.both", "--output", "x.csv"], "The report has 2 files: x.csv must be a folder that exists."),
        (["tests.named", "--output", "nowhere/x.csv"], "nowhere/x.csv cannot be written: No such file or directory."),
        (["tests.named", "--output", "/dev/null"], "/dev/null is not a file, and is not replaced."),
        (["tests.named", "--params", '{"broken": "final"}'], "gone"),
    ],
)
def test_each_error_is_a_sentence(arguments: list[str], sentence: str, place: Path) -> None:
    assert sentence in refused(*arguments)
    assert names(place) == []


def test_a_device_or_a_pipe_is_not_replaced(place: Path) -> None:
    os.mkfifo(place / "pipe")
    assert refused("tests.named", "--output", "pipe") == "pipe is not a file, and is not replaced."
    assert (place / "pipe").is_fifo()


@pytest.mark.parametrize("broken", ["key", "final", "other"])
def test_an_error_midway_leaves_nothing_and_prints_nothing(broken: str, place: Path) -> None:
    params = ("--params", json.dumps({"broken": broken}))
    (place / "kept.csv").write_bytes(b"old")
    stream = io.TextIOWrapper(io.BytesIO())
    for arguments in (("tests.named",), ("tests.named", "--output", "kept.csv"), ("tests.both",)):
        with pytest.raises((CommandError, ConnectionError)) as caught:
            call_command("generate_report", *arguments, *params, stdout=stream, stderr=io.StringIO())
        if broken == "key":
            assert caught.value.returncode == 130
            assert str(caught.value) == "Interrupted. No file is left."
    assert names(place) == ["kept.csv"]
    assert (place / "kept.csv").read_bytes() == b"old"
    stream.flush()
    assert stream.buffer.tell() == 0


@pytest.mark.parametrize(("terminal", "shown"), [(True, "\r500 rows \r1000 rows \r\x1b[K"), (False, "")])
def test_only_a_terminal_shows_the_progress(terminal: bool, shown: str) -> None:
    output = Output("tests.rows", "--params", '{"rows": 1001}', "--format", "csv", terminal=terminal)
    assert output.messages.getvalue() == f"No execution is recorded.\n{shown}Wrote 1001 rows to standard output.\n"


def test_a_workbook_is_not_printed_on_a_terminal() -> None:
    with pytest.raises(CommandError, match="A terminal cannot show this report"):
        call_command("generate_report", "tests.named", "--format", "xlsx", stdout=Terminal(), stderr=io.StringIO())


@pytest.mark.processes
def test_ctrl_c_leaves_no_file(commands: Commands, place: Path) -> None:
    endless = ("generate_report", "tests.rows", "--params", '{"rows": 1000000000}', "--output", str(place))
    process = commands.start(*endless)
    wait_for(lambda: len(names(place)) == 2, "the temporary files")
    assert all(name.startswith(".report-") for name in names(place))
    process.send_signal(signal.SIGINT)
    assert process.wait(60) == 130
    assert names(place) == []
    assert commands.log(process).splitlines() == [
        "No execution is recorded.", "CommandError: Interrupted. No file is left.",
    ]  # fmt: skip


@pytest.mark.processes
@pytest.mark.parametrize("rows", [2, 20_000])  # few rows are still in the buffer of standard output
def test_a_reader_that_goes_away_is_told_in_a_sentence(rows: int, commands: Commands) -> None:
    arguments = ["generate_report", "tests.rows", "--params", json.dumps({"rows": rows}), "--format", "jsonl"]
    with subprocess.Popen(
        [sys.executable, "manage.py", *arguments],
        cwd=ROOT, env=commands.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        process.stdout.close()
        _nothing, messages = process.communicate(timeout=60)
    assert process.returncode == 1
    assert messages.decode().splitlines() == [
        "No execution is recorded.", "CommandError: Standard output was closed before the end of the report.",
    ]  # fmt: skip
