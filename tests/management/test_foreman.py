"""The tests run a foreman and its children as real processes, and send signals as operators do."""

from __future__ import annotations

import io
import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from scheduling.management.child import Backoff, describe
from scheduling.management.foreman import Exit
from scheduling.management.log_prefix import LONGEST_LINE, Prefixer, wants_colour
from scheduling.management.orphan_reaper import read_sessions
from tests.management.running import Running, exists, until

# The Python code of the children. When a child is ready, it prints a line, for example its process id.
STOPS_ON_SIGTERM = """
import os, signal, sys
def stop(*_):
    print("bye"); sys.exit(0)
signal.signal(signal.SIGTERM, stop)
print("pid", os.getpid())
while True: signal.pause()
"""
PRINTS = """
import sys
print("out")
print("err", file=sys.stderr)
sys.stdout.write("no end")
"""
IGNORES_SIGNALS = """
import os, signal
for number in (signal.SIGTERM, signal.SIGINT): signal.signal(number, signal.SIG_IGN)
print("pid", os.getpid())
while True: signal.pause()
"""
STARTS_TWO_PROCESSES = """
import os, signal, subprocess, sys
deaf = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('deaf', flush=True); signal.pause()"
same = subprocess.Popen([sys.executable, "-c", deaf], stdout=subprocess.PIPE)
own = subprocess.Popen([sys.executable, "-c", deaf], stdout=subprocess.PIPE, process_group=0)
same.stdout.readline(), own.stdout.readline()
print("same", same.pid)
print("own", own.pid)
print("pid", os.getpid())
"""
STOPS_ON_SECOND_SIGTERM = """
import signal, sys
seen = []
def stop(*_):
    seen.append(1)
    print("asked", len(seen))
    if len(seen) == 2: sys.exit(0)
signal.signal(signal.SIGTERM, stop)
print("ready")
while True: signal.pause()
"""
SHORT_PAUSES = {"first": 0.05, "longest": 0.4}


def foreman(children: dict[str, Any], **options: Any) -> Running:
    argv = [sys.executable, "-m", "tests.management.foreman_process", json.dumps(children), json.dumps(options)]
    return Running(argv)


@pytest.mark.processes
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_after_a_signal_all_children_end_and_the_exit_is_clean(number: signal.Signals) -> None:
    with foreman({"web": STOPS_ON_SIGTERM, "consumer": STOPS_ON_SIGTERM}) as running:
        pids = [int(match.group(1)) for match in running.wait_for(r"\| pid (\d+)$", 2)]
        running.send(number)
        assert running.ended() == Exit.CLEAN
        assert "web      | bye\n" in running.text
        assert "consumer | bye\n" in running.text
        assert "up       | Stopping: web, consumer may take up to 35 s to finish." in running.text
        assert not any(exists(pid) for pid in pids)


@pytest.mark.processes
def test_each_line_of_output_begins_with_the_name_of_the_child() -> None:
    with foreman({"a": STOPS_ON_SIGTERM, "longer": PRINTS + STOPS_ON_SIGTERM}) as running:
        running.wait_for(r"pid", 2)
        running.send(signal.SIGTERM)
        running.ended()
        for line in ("longer | out\n", "longer | err\n", "longer | no end"):
            assert line in running.text


@pytest.mark.processes
def test_stdin_is_empty_and_each_child_leads_a_session() -> None:
    code = (
        "import os, sys; print(repr(sys.stdin.read()), os.getsid(0) == os.getpgid(0) == os.getpid())\n"
        + STOPS_ON_SIGTERM
    )
    with foreman({"child": code}) as running:
        running.wait_for(r"child \| '' True$")


@pytest.mark.processes
def test_a_child_runs_while_it_is_needed_and_with_the_arguments_that_are_needed(tmp_path: Path) -> None:
    need = tmp_path / "need"
    code = STOPS_ON_SIGTERM.replace('print("pid", os.getpid())', 'print("with", *sys.argv[1:])')
    with foreman({"always": STOPS_ON_SIGTERM, "services": {"code": code, "demand": str(need)}}) as running:
        running.wait_for("always.*pid")
        assert "services |" not in running.text
        need.write_text("one")
        running.wait_for(r"services \| with one")
        need.write_text("two")
        running.wait_for("services starts again, because there is more for it to do")
        running.wait_for(r"services \| with two")
        need.unlink()
        running.wait_for("services is not needed any more")
        running.wait_for("services stopped", 2)
        need.write_text("three")
        running.wait_for(r"services \| with three")
        running.send(signal.SIGTERM)
        assert running.ended() == Exit.CLEAN
    assert "starting it again in" not in running.text


@pytest.mark.processes
def test_a_child_that_dies_is_started_again_after_growing_pauses() -> None:
    with foreman({"child": "print('alive'); raise SystemExit(7)"}, backoff=SHORT_PAUSES) as running:
        lines = running.wait_for(r"^up    \| child ended with exit code 7; starting it again in ([\d.]+) s\.$", 5)
        assert [match.group(1) for match in lines[:5]] == ["0.05", "0.1", "0.2", "0.4", "0.4"]
        running.send(signal.SIGINT)
        assert running.ended() == Exit.CLEAN


@pytest.mark.processes
def test_a_killed_child_is_named_with_its_signal_and_the_others_go_on() -> None:
    with foreman({"one": STOPS_ON_SIGTERM, "two": STOPS_ON_SIGTERM}, backoff=SHORT_PAUSES) as running:
        first = running.number(r"^one \| pid (\d+)$")
        other = running.number(r"^two \| pid (\d+)$")
        os.kill(first, signal.SIGKILL)
        running.wait_for(r"one was killed by SIGKILL; starting it again")
        assert running.number(r"^one \| pid (\d+)$", 1) != first
        assert exists(other)


@pytest.mark.processes
def test_a_command_that_does_not_exist_is_tried_again() -> None:
    with foreman({"bad": ["/nonexistent/command"], "good": STOPS_ON_SIGTERM}, backoff=SHORT_PAUSES) as running:
        running.wait_for(r"bad cannot be started \(.*\); starting it again in", 2)
        running.wait_for(r"^good \| pid")
        running.send(signal.SIGTERM)
        assert running.ended() == Exit.CLEAN


@pytest.mark.processes
def test_orphans_of_a_dead_child_are_ended_before_its_restart() -> None:
    with foreman({"child": STARTS_TWO_PROCESSES}, backoff={"first": 3600}) as running:
        same, own = running.number(r"\| same (\d+)$"), running.number(r"\| own (\d+)$")
        running.wait_for("starting it again in 3600 s")
        until(lambda: not exists(same) and not exists(own), "the processes of the session end")


@pytest.mark.processes
def test_a_child_that_runs_after_the_grace_time_is_killed_with_its_session() -> None:
    with foreman({"deaf": STARTS_TWO_PROCESSES + IGNORES_SIGNALS}, grace=0.2) as running:
        pids = [running.number(rf"\| {name} (\d+)$") for name in ("same", "own", "pid")]
        running.wait_for(r"\| pid", 2)
        running.send(signal.SIGTERM)
        assert running.ended() == Exit.FORCED
        assert "Killing deaf: still running after the time to stop." in running.text
        assert "deaf was killed by SIGKILL." in running.text
        until(lambda: not any(exists(pid) for pid in pids), "the whole session ends")


@pytest.mark.processes
def test_a_second_signal_asks_again_and_does_not_wait_for_the_grace() -> None:
    with foreman({"child": STOPS_ON_SECOND_SIGTERM}, grace=3600, hurry=3600) as running:
        running.wait_for("ready")
        running.send(signal.SIGINT)
        running.wait_for(r"child \| asked 1$")
        running.send(signal.SIGINT)
        running.wait_for(r"child \| asked 2$")
        assert running.ended() == Exit.CLEAN


@pytest.mark.processes
def test_second_signal_kills_slow_children() -> None:
    with foreman({"deaf": IGNORES_SIGNALS}, grace=3600, hurry=0.1) as running:
        pid = running.number(r"\| pid (\d+)$")
        running.send(signal.SIGINT)
        running.wait_for("Ctrl-C again")
        assert exists(pid)
        running.send(signal.SIGINT)
        assert running.ended() == Exit.FORCED
        assert not exists(pid)


@pytest.mark.processes
def test_a_third_signal_kills_at_once() -> None:
    with foreman({"deaf": IGNORES_SIGNALS}, grace=3600, hurry=3600) as running:
        pid = running.number(r"\| pid (\d+)$")
        for line in ("Ctrl-C again", "Not waiting any longer", "Killing deaf"):
            running.send(signal.SIGINT)
            running.wait_for(line)
        assert running.ended() == Exit.FORCED
        assert not exists(pid)


@pytest.mark.processes
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGQUIT])
def test_children_end_when_the_foreman_is_killed(number: signal.Signals) -> None:
    with foreman({"polite": STOPS_ON_SIGTERM, "deaf": STARTS_TWO_PROCESSES + IGNORES_SIGNALS}, grace=0.2) as running:
        pids = [running.number(rf"\| {name} (\d+)$") for name in ("same", "own")]
        pids += [running.number(rf"^{name} *\| pid (\d+)$") for name in ("polite", "deaf")]
        running.wait_for(r"^deaf *\| pid", 2)
        running.send(number)
        assert running.process.wait() == -number
        until(lambda: not any(exists(pid) for pid in pids), "no child outlives the foreman")


@pytest.mark.parametrize(
    ("previous", "lived", "pause"),
    [(0, 0, 1), (1, 0.1, 2), (2, 59, 4), (16, 5, 30), (30, 5, 30), (30, 60, 1), (0, 3600, 1)],
)
def test_backoff(previous: float, lived: float, pause: float) -> None:
    assert Backoff().after(previous, lived) == pause


@pytest.mark.parametrize(
    ("returncode", "words"),
    [(0, "ended with exit code 0"), (3, "ended with exit code 3"), (-9, "was killed by SIGKILL"), (-64, "killed by")],
)
def test_descriptions_of_exit_codes(returncode: int, words: str) -> None:
    assert words in describe(returncode)


def test_sessions_that_the_reaper_reads() -> None:
    assert read_sessions(["+10\n", "+11\n", "-10\n", "+12\n", "-9\n"]) == {11, 12}


class TestPrefixer:
    @pytest.mark.parametrize(
        ("pieces", "shown"),
        [
            ([b"one\ntwo\n"], "a  | one\na  | two\n"),
            ([b"o", b"ne\nt", b"wo"], "a  | one\na  | two\n"),
            ([b"\n"], "a  | \n"),
            ([b"caf\xc3", b"\xa9\n"], "a  | café\n"),
            ([b"\xff\n"], "a  | \ufffd\n"),
            ([b"dos\r\n", b"10%\r20%\r30%\n"], "a  | dos\na  | 30%\n"),
        ],
    )
    def test_lines(self, pieces: list[bytes], shown: str) -> None:
        stream = io.StringIO()
        out = Prefixer(stream, ["a"], own="up", colour=False)
        for piece in pieces:
            out.feed("a", piece)
        out.finish("a")
        assert stream.getvalue() == shown

    def test_a_long_line_without_an_end_is_written(self) -> None:
        stream = io.StringIO()
        Prefixer(stream, ["a"], own="up", colour=False).feed("a", b"x" * LONGEST_LINE)
        assert len(stream.getvalue()) > LONGEST_LINE

    def test_each_child_has_a_different_colour(self) -> None:
        stream = io.StringIO()
        out = Prefixer(stream, ["a", "b"], own="up", colour=True)
        out.feed("a", b"x\n")
        out.feed("b", b"x\n")
        assert stream.getvalue() == "\x1b[36ma  |\x1b[0m x\n\x1b[33mb  |\x1b[0m x\n"

    def test_a_letter_that_a_stream_cannot_write_is_replaced(self) -> None:
        raw = io.BytesIO()
        stream = io.TextIOWrapper(raw, "ascii")
        Prefixer(stream, ["a"], own="up", colour=False).feed("a", "é\n".encode())
        assert raw.getvalue() == b"a  | ?\n"

    def test_a_closed_terminal_is_not_an_error(self) -> None:
        class Gone(io.StringIO):
            def write(self, _text: str) -> int:
                raise BrokenPipeError

        Prefixer(Gone(), ["a"], own="up", colour=False).feed("a", b"x\n")

    @pytest.mark.parametrize(
        ("tty", "env", "colour"),
        [
            (True, {}, True),
            (False, {}, False),
            (True, {"NO_COLOR": "1"}, False),
            (True, {"NO_COLOR": ""}, True),
            (True, {"TERM": "dumb"}, False),
        ],
    )
    def test_colours_are_only_for_terminals(
        self, tty: bool, env: dict[str, str], colour: bool, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        class Stream(io.StringIO):
            def isatty(self) -> bool:
                return tty

        monkeypatch.setenv("TERM", "xterm")
        monkeypatch.delenv("NO_COLOR", raising=False)
        for name, value in env.items():
            monkeypatch.setenv(name, value)
        assert wants_colour(Stream()) is colour
