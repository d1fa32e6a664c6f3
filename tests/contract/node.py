"""A RabbitMQ server of a test's own, with limits that the shared one must not have."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

SCRIPT = Path(__file__).with_name("rabbitmq-node")

ROOTS_4 = tuple(os.environ.get("TEST_RABBITMQ_4_ROOTS", "").split())
"""Folders into which `rabbitmq-node fetch` unpacked a RabbitMQ 4."""

NOT_HAD = 77
"""The script's exit code for a server that cannot be had here."""

ROOTS = [pytest.param("/", id="installed")] + (
    [pytest.param(each, id=Path(each).name, marks=pytest.mark.rabbitmq4) for each in ROOTS_4]
    or [
        pytest.param(
            "",
            id="rabbitmq4",
            marks=[pytest.mark.rabbitmq4, pytest.mark.skip(reason="TEST_RABBITMQ_4_ROOTS names no RabbitMQ 4")],
        )
    ]
)
"""The machine's own RabbitMQ, and each that was fetched."""


@contextmanager
def node(folder: Path, root: str, *terms: str) -> Iterator[str]:
    """The URL of a server that is started, and ended when it is left; skips with the reason where there can be none.

    Args:
        folder: for its data, its log and its process id.
        root: `/` for the machine's own RabbitMQ, or where one was unpacked.
        terms: RabbitMQ's settings in Erlang, `{consumer_timeout, 5000}`.
    """
    started = subprocess.run([SCRIPT, "start", folder, root, *terms], capture_output=True, text=True, timeout=120)
    if started.returncode == NOT_HAD:
        pytest.skip(started.stderr.strip().splitlines()[-1])
    assert started.returncode == 0, started.stderr
    try:
        yield started.stdout.strip()
    finally:
        subprocess.run([SCRIPT, "stop", folder], check=True, timeout=60)
