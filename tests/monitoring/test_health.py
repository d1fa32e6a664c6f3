"""`health` prints one line and exits with 0 or 1. The health checks of the containers use this exit code."""

from __future__ import annotations

import io
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest
import time_machine
from django.core.management import CommandError, call_command
from django.utils import timezone as clock

from tests.factories import ProcessFactory
from tests.support import Commands


def health(*arguments: str) -> tuple[int, str]:
    """Run the command and return its exit code and its line of output."""
    out = io.StringIO()
    code = 0
    try:
        call_command("health", *arguments, stdout=out)
    except SystemExit as end:
        code = int(end.code or 0)
    (line,) = out.getvalue().splitlines()
    return code, line


def process(age: float, **columns: Any) -> None:
    ProcessFactory(**{"host": socket.gethostname(), "heartbeat_at": clock.now() - timedelta(seconds=age), **columns})


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("columns", "arguments", "code", "words"),
    [
        ({"age": 3}, ["--kind=consumer"], 0, "healthy: consumer host-"),
        ({"age": 50}, ["--kind=consumer"], 0, "healthy"),
        ({"age": 70}, ["--kind=consumer"], 1, "last heartbeat 1 min 10 s ago"),
        ({"age": 70}, ["--kind=consumer", "--seconds=120"], 0, "healthy"),
        ({"age": 50}, ["--kind=consumer", "--seconds=30"], 1, "last heartbeat 50 s ago"),
        ({"age": 3}, ["--kind=producer"], 1, "no producer is at work"),
        ({"age": 3, "producer": True}, ["--kind=producer"], 0, "healthy: producer"),
        ({"age": 3, "host": "elsewhere"}, ["--kind=consumer"], 1, "no consumer is at work"),
        ({"age": 3, "stopped_at": clock.now()}, ["--kind=consumer"], 1, "no consumer is at work"),
        ({"age": 100_000}, ["--kind=consumer"], 1, "no consumer is at work"),
    ],
)
@time_machine.travel(clock.now(), tick=False)
def test_heartbeats(columns: dict[str, Any], arguments: list[str], code: int, words: str) -> None:
    process(**columns)
    found, line = health(*arguments)
    assert found == code
    assert words in line


@pytest.mark.django_db
def test_a_long_lease_lengthens_the_limit(settings: Any) -> None:
    settings.CRON_LEASE_SECONDS = "300"
    process(age=290)
    process(age=310, producer=True)
    assert health("--kind=consumer")[0] == 0
    assert health("--kind=producer")[0] == 1


@pytest.mark.django_db
def test_the_latest_heartbeat_counts() -> None:
    process(age=100)
    process(age=1)
    assert health("--kind=consumer")[0] == 0


@pytest.mark.django_db
def test_health_needs_one_query(django_assert_num_queries: Any) -> None:
    with django_assert_num_queries(1):
        health("--kind=consumer")


def test_invalid_arguments_are_refused() -> None:
    with pytest.raises(CommandError, match="at least 1"):
        call_command("health", "--kind=consumer", "--seconds=0")


@contextmanager
def website(status: int, hosts: list[str] | None = None) -> Iterator[int]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if hosts is not None:
                hosts.append(self.headers["Host"])
            self.send_response(status)
            self.end_headers()

        def log_message(self, *_arguments: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.mark.parametrize(("status", "code"), [(200, 0), (302, 0), (400, 0), (500, 1), (503, 1)])
def test_web(status: int, code: int) -> None:
    with website(status) as port:
        assert health("--kind=web", f"--port={port}") == (
            code,
            f"{'unhealthy' if code else 'healthy'}: web on port {port} answers {status}",
        )


@pytest.mark.parametrize(
    ("allowed", "name"), [([".example.com"], "example.com"), (["*"], "localhost"), ([], "localhost")]
)
def test_the_request_has_an_allowed_host_name(allowed: list[str], name: str, settings: Any) -> None:
    settings.ALLOWED_HOSTS = allowed
    hosts: list[str] = []
    with website(200, hosts) as port:
        health("--kind=web", f"--port={port}")
    assert hosts == [name]


def test_no_web_server(free_port: int) -> None:
    code, line = health("--kind=web", f"--port={free_port}")
    assert code == 1
    assert "does not answer" in line


@pytest.mark.processes
def test_real_processes(commands: Commands) -> None:
    assert commands.run("health", "--kind", "producer")[0] == 1
    producer = commands.start("run_scheduler")
    consumer = commands.start("run_worker")
    commands.ready(producer, consumer)
    assert commands.run("health", "--kind", "consumer")[0] == 0
    code, text = commands.run("health", "--kind", "producer")
    assert (code, text.startswith("healthy: producer ")) == (0, True), text
    code, text = commands.run("doctor", "--strict")
    assert code == 0, text
    commands.stop(producer)
    commands.stop(consumer)
    assert commands.run("health", "--kind", "consumer")[0] == 1


@pytest.mark.processes
def test_a_database_that_does_not_answer(commands: Commands) -> None:
    code, text = commands.run("health", "--kind", "consumer", DATABASE_URL="sqlite:////nonexistent/db.sqlite3")
    assert code == 1
    assert text.startswith("unhealthy: the database does not answer: ")
    assert "Traceback" not in text
