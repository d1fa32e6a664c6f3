"""docs/operations/monitoring.md: the recipes for RabbitMQ, on a server with the management plugin."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pika
import pytest

from scheduling.broker.rabbitmq import RabbitBroker
from tests.contract.conftest import RUNGS
from tests.contract.node import SCRIPT, node
from tests.management.running import free_ports
from tests.operations.recipes import blocks
from tests.support import wait_for

FAILED = "cron_scheduler_failed"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home whose `rabbitmqctl` and `rabbitmqadmin` speak with the server of this test."""
    if shutil.which("rabbitmqadmin") is None:
        pytest.skip("rabbitmqadmin is not installed")
    (port,) = free_ports(1)
    monkeypatch.setenv("NODE_MANAGEMENT", str(port))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    (tmp_path / ".rabbitmqadmin.conf").write_text(f"[default]\nhostname = 127.0.0.1\nport = {port}\n")
    (tmp_path / "rabbitmqctl").write_text(f'#!/bin/sh\nexec {SCRIPT} ctl {tmp_path / "node"} / "$@"\n')
    (tmp_path / "rabbitmqctl").chmod(0o755)
    return tmp_path


@pytest.mark.rabbitmq
def test_the_queues_and_the_failed_messages_are_shown_and_stay(home: Path) -> None:
    (listed,), (managed,) = blocks("sh broker"), blocks("sh management")
    body = json.dumps({"type": "report", "id": 25, "failed_reason": "Connection timeout"}).encode()
    with node(home / "node", "/") as url:
        broker = RabbitBroker(url, ladder=RUNGS, patience=60.0)
        broker.declare([])
        broker.close()
        with pika.BlockingConnection(pika.URLParameters(url)) as connection:
            for _ in range(3):
                connection.channel().basic_publish("", FAILED, body)
        wait_for(lambda: f"| {FAILED} | 3 " in squeezed(run(managed)), "the plugin has counted the messages")
        lines = run(managed).splitlines()
        assert sum("Connection timeout" in line for line in lines) == 3
        by_queue = dict(line.split("\t") for line in run(listed).splitlines() if line.count("\t") == 1)
        assert by_queue[FAILED] == "3", "reading has put the messages back"
        assert by_queue["cron_scheduler"] == by_queue["cron_scheduler_retry"] == "0"


def run(commands: str) -> str:
    """What the commands of a recipe print. The plugin may not answer yet: then nothing."""
    done = subprocess.run(["bash", "-e", "-c", commands], capture_output=True, text=True, timeout=120, check=False)
    return done.stdout


def squeezed(text: str) -> str:
    """The text with one space where there are several."""
    return " ".join(text.split())
