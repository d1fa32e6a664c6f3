"""A producer and a consumer serve their own figures, and work the same without the server."""

from __future__ import annotations

import http.client
import socket
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone as clock

from scheduling.metrics import names
from scheduling.metrics.own_server import metrics_server
from scheduling.processes.figures import figures
from tests.factories import SchedulerFactory, due
from tests.metrics.scrape import Samples, samples, value
from tests.support import Commands, wait_for


def ask(port: int) -> Samples:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    connection.request("GET", "/metrics")
    text = connection.getresponse().read().decode()
    connection.close()
    return samples(text)


def test_the_figures_of_this_process(free_port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(figures, "claims", 41)
    monkeypatch.setattr(figures, "held", True)
    with metrics_server(free_port, "127.0.0.1"):
        hanging = socket.create_connection(("127.0.0.1", free_port))  # a client that asks for nothing
        found = ask(free_port)
        assert (value(found, "process_claims_total"), value(found, "process_held")) == (41, 1)
        assert {name for name, _labels in found} == {metric.name for metric in names.OF_PROCESS}
    hanging.close()
    with pytest.raises(OSError, match="refused"):
        ask(free_port)


def test_a_port_that_is_taken_stops_nothing(free_port: int, caplog: pytest.LogCaptureFixture) -> None:
    reached = []
    with metrics_server(free_port, "127.0.0.1"), metrics_server(free_port, "127.0.0.1"):
        reached.append(ask(free_port))
    assert len(reached) == 1
    assert "cannot be opened" in caplog.text


@pytest.mark.any_database
@pytest.mark.django_db
@pytest.mark.parametrize("command", ["run_scheduler", "run_worker"])
def test_a_port_that_does_not_exist(command: str) -> None:
    with pytest.raises(CommandError, match="from 1 to 65535"):
        call_command(command, metrics_port=70_000)


@pytest.mark.processes
@pytest.mark.django_db(transaction=True)
def test_the_commands_count_what_they_do_and_end(commands: Commands, free_port: int) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        other: int = probe.getsockname()[1]
    due(SchedulerFactory(schedule="* * * * *"), clock.now())
    producer = commands.start("run_scheduler", f"--metrics-port={free_port}")
    consumer = commands.start("run_worker", f"--metrics-port={other}", "--concurrency=2")

    def figure(port: int, name: str) -> Any:
        try:
            return value(ask(port), name)
        except OSError:
            return 0

    wait_for(lambda: figure(free_port, "process_claims_total"), "a claim")
    wait_for(lambda: figure(other, "process_starts_total"), "a start")
    assert figure(other, "process_slots") == 2
    assert figure(free_port, "process_turns_total") > 0
    hanging = socket.create_connection(("127.0.0.1", free_port))
    for process in (producer, consumer):
        process.terminate()
        assert process.wait(60) == 0
    hanging.close()
