"""A child ends when the consumer ends."""

from __future__ import annotations

import os
import select
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import ROOT

PARENT_ENDS_FIRST = """
import os, socket, sys, time, types
from scheduling.consumer import forkserver

parent = os.getpid()

def late():
    while os.getppid() == parent:
        time.sleep(0.01)

def run(channel):
    open(sys.argv[1], "w").close()
    return 0

forkserver.die_with_parent = late
sys.modules["scheduling.consumer.child"] = types.SimpleNamespace(main=run)
server = forkserver.Forkserver(socket.socketpair()[0])
server._fork(1, socket.socketpair()[0].detach(), os.open(os.devnull, os.O_WRONLY))
os._exit(0)
"""


@pytest.mark.processes
def test_child_runs_nothing_if_its_parent_ends_before_prctl(tmp_path: Path) -> None:
    read, write = os.pipe()
    try:
        process = subprocess.Popen(
            [sys.executable, "-c", PARENT_ENDS_FIRST, str(tmp_path / "ran")], cwd=ROOT, pass_fds=[write]
        )
    finally:
        os.close(write)
    assert process.wait(30) == 0
    # The child inherits the file descriptor `write`. So `select` reports end of file only after the child has exited.
    assert select.select([read], [], [], 30)[0]
    assert os.read(read, 1) == b""
    os.close(read)
    assert not (tmp_path / "ran").exists()
