"""Starts a RabbitMQ server for a single test, with settings that would disturb other tests on a shared server."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

SCRIPT = Path(__file__).with_name("rabbitmq-node")

ROOTS_4 = tuple(os.environ.get("TEST_RABBITMQ_4_ROOTS", "").split())
"""Folders into which `rabbitmq-node fetch` has unpacked versions of RabbitMQ 4."""

NOT_AVAILABLE = 77
"""The exit code of the script `rabbitmq-node` when the server cannot run on this machine."""

ROOTS = [pytest.param("/", id="installed")] + (
    [pytest.param(root, id=Path(root).name, marks=pytest.mark.rabbitmq4) for root in ROOTS_4]
    or [
        pytest.param(
            "",
            id="rabbitmq4",
            marks=[pytest.mark.rabbitmq4, pytest.mark.skip(reason="TEST_RABBITMQ_4_ROOTS names no RabbitMQ 4")],
        )
    ]
)
"""The test parameters for `root`: the folder of this machine's RabbitMQ and the folders of the downloaded versions."""


@contextmanager
def node(folder: Path, root: str, *terms: str) -> Iterator[str]:
    """Start a server, provide its URL, and stop the server at the end. If no server can run here, skip the test.

    Args:
        folder: the folder for the server's data, its log and its process id.
        root: `/` for the machine's own RabbitMQ, or the folder into which another version was unpacked.
        terms: RabbitMQ's settings as Erlang terms, such as `{consumer_timeout, 5000}`.
    """
    started = subprocess.run([SCRIPT, "start", folder, root, *terms], capture_output=True, text=True, timeout=120)
    if started.returncode == NOT_AVAILABLE:
        pytest.skip(started.stderr.strip().splitlines()[-1])
    assert started.returncode == 0, started.stderr
    try:
        yield started.stdout.strip()
    finally:
        subprocess.run([SCRIPT, "stop", folder], check=True, timeout=60)
