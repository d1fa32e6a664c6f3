"""A request that ends after gunicorn's worker has stopped writes nothing into the SQLite database."""

from __future__ import annotations

import os
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from types import SimpleNamespace

import pytest
from gunicorn.workers.gthread import PollableMethodQueue

from scheduling.management.web_descriptors import keep_descriptors
from tests.http.client import listens
from tests.management.running import ROOT, Running, answers, environment, exists, until

SQLITE = b"SQLite format 3\x00"


def begun(path: Path) -> sqlite3.Connection:
    """A connection that has opened the file."""
    one = sqlite3.connect(path)
    one.execute("CREATE TABLE IF NOT EXISTS one (x)")
    return one


@pytest.mark.parametrize("kept", [True, False])
def test_the_byte_of_a_late_request_does_not_reach_a_database(kept: bool, tmp_path: Path) -> None:
    queue, path = PollableMethodQueue(), tmp_path / "db.sqlite3"
    queue.init()
    number = queue._write_fd
    if kept:
        keep_descriptors(SimpleNamespace(method_queue=queue))
    queue.close()
    with ExitStack() as stack:
        for _ in range(4):  # the first ones get the lowest numbers, and one of them that of the pipe
            stack.enter_context(closing(begun(path)))
        assert (os.readlink(f"/proc/self/fd/{number}") == str(path)) is not kept
        queue.defer(print)
        # Another process reads the file: if this one closes it, SQLite's locks are gone.
        head = subprocess.run(["head", "-c", "16", path], capture_output=True, check=True).stdout
        assert (head == SQLITE) is kept, "gunicorn has mended it: scheduling/management/web_descriptors.py can go"
    for fd in (queue._read_fd, number) if kept else ():
        os.close(fd)


def pipes(pid: int) -> set[str]:
    """The pipes that a process has open."""
    found = set()
    for one in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(FileNotFoundError):  # it was closed just now
            found.add(os.readlink(one))
    return {one for one in found if one.startswith("pipe:")}


def worker_of(main: int) -> int:
    """The process that gunicorn's main process has started."""
    children = Path(f"/proc/{main}/task/{main}/children")
    until(lambda: bool(children.read_text()), "the worker is there")
    return int(children.read_text())


@pytest.mark.processes
def test_the_web_servers_worker_keeps_its_pipes_while_a_request_is_under_way(tmp_path: Path, free_port: int) -> None:
    command = [sys.executable, str(ROOT / "manage.py"), "run_web", "--port", str(free_port)]
    with Running(command, environment(tmp_path)) as running:
        until(lambda: answers(f"http://127.0.0.1:{free_port}/favicon.ico"), "the site answers")
        worker = worker_of(running.process.pid)
        with socket.create_connection(("127.0.0.1", free_port)) as late:
            late.sendall(b"POST /cron/schedulers HTTP/1.1\r\nHost: 127.0.0.1\r\n")  # the rest of the request is missing
            time.sleep(0.5)
            before = pipes(worker)
            running.send(signal.SIGKILL)
            until(lambda: not listens(free_port), "the worker has stopped")
            assert len(before) >= 2
            assert pipes(worker) == before
        until(lambda: not exists(worker), "the worker has ended")
