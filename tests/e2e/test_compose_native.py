"""The test starts the services of docker-compose.yml without containers, with the same commands in the same order.

A user signs in. A schedule falls due, and the admin shows the execution and its output. Then all services stop cleanly.

`make compose-native` runs only this file. TEST_DATABASE_URLS and TEST_BROKER_URL name the servers.
"""

from __future__ import annotations

import http.cookiejar
import re
import subprocess
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from scheduling.management import command_line
from tests import compose
from tests.contract.server import Server, require
from tests.own_database import missing, own_database, server_urls
from tests.support import Commands, marks, wait_for

pytestmark = pytest.mark.processes

PASSWORD = "correct horse battery staple"


def server_url() -> str:
    """Return the first MySQL URL in TEST_DATABASE_URLS, because docker-compose.yml uses MySQL.

    If there is no MySQL URL, return the URL of another database server.
    """
    found = sorted(server_urls(), key=lambda url: not url.startswith("mysql"))
    if not found:
        missing("TEST_DATABASE_URLS names no server")
    return found[0]


@pytest.fixture
def fresh_database(django_db_blocker: Any) -> Iterator[str]:
    """Provide the URL of a new, empty database. At the end, drop the database."""
    with own_database(server_url(), django_db_blocker) as url:
        yield url


@pytest.fixture
def broker_url() -> Iterator[str]:
    """Provide the URL of the broker with a unique prefix for the queues. At the end, delete the queues."""
    require()
    with closing(Server()) as server:
        yield server.url()


class Site:
    """A simple HTTP client that keeps cookies."""

    def __init__(self, port: int) -> None:
        self.address = f"http://127.0.0.1:{port}"
        self._open = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(http.cookiejar.CookieJar())).open

    def get(self, path: str) -> str:
        """Return a page as text."""
        with self._open(self.address + path) as response:
            return str(response.read().decode())

    def sign_in(self, user: str) -> str:
        """Sign in and return the page that follows the login form."""
        page = self.get("/admin/login/?next=/admin/")
        token = re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', page)
        assert token is not None
        form = {
            "csrfmiddlewaretoken": token.group(1),
            "username": user,
            "password": PASSWORD,
            "next": "/admin/",
        }
        with self._open(f"{self.address}/admin/login/", urllib.parse.urlencode(form).encode()) as response:
            return str(response.read().decode())


class Services:
    """The services of docker-compose.yml, started as processes on this machine."""

    def __init__(self, commands: Commands, port: int) -> None:
        self.commands, self.port = commands, port
        self.running: list[tuple[str, subprocess.Popen[bytes]]] = []

    def up(self) -> None:
        """Start the services in order. After each start, wait until the service's health check passes."""
        services = compose.load()["services"]
        for name in compose.order(services):
            service = services[name]
            if name not in compose.ours(services):
                continue  # the database and the broker already run on this machine
            command = [self._native(word) for word in compose.command(service)]
            if service["restart"] == "no":
                code, output = self.commands.run(*command)
                assert code == 0, output
                continue
            for _ in range(service.get("deploy", {}).get("replicas", 1)):
                self.running.append((name, self.commands.start(*command)))
            self._healthy(name, service["healthcheck"]["test"][2:])

    def down(self) -> dict[str, list[int]]:
        """Stop all services at the same time, as `docker compose stop` does, and return the exit codes by service."""
        for _, process in self.running:
            process.terminate()
        codes: dict[str, list[int]] = {}
        for name, process in self.running:
            codes.setdefault(name, []).append(process.wait(60))
        return codes

    def logs(self) -> str:
        """Return the output of all processes."""
        return "\n".join(f"--- {name}\n{self.commands.log(process)}" for name, process in self.running)

    def _native(self, word: str) -> str:
        return {"--host=0.0.0.0": "--host=127.0.0.1", "--port=8000": f"--port={self.port}"}.get(word, word)

    def _healthy(self, name: str, probe: list[str]) -> None:
        words = [*probe, f"--port={self.port}"]
        wait_for(lambda: self.commands.run(*words)[0] == 0, f"{name} is healthy\n{self.logs()}", 60)


def schedule(commands: Commands, handler: str, params: dict[str, Any], description: str) -> None:
    """Create a schedule that is due in one second."""
    code, output = commands.run(
        "shell",
        "-c",
        "from datetime import timedelta\n"
        "from django.utils import timezone\n"
        "from scheduling.models import Scheduler, Worker\n"
        f"Scheduler.objects.create(worker=Worker.objects.get(name={handler!r}), params={params!r},\n"
        f"    description={description!r}, date_time=timezone.now() + timedelta(seconds=1))\n",
    )
    assert code == 0, output


def test_the_services_run_schedules_and_stop_cleanly(tmp_path: Path, fresh_database: str, broker_url: str) -> None:
    port = command_line.free_port("127.0.0.1", 18000) or 0
    commands = Commands(tmp_path, DATABASE_URL=fresh_database, BROKER_URL=broker_url, CRON_GRACE_SECONDS="20")
    services = Services(commands, port)
    site = Site(port)
    try:
        services.up()
        assert [name for name, _ in services.running].count("producer") == 2
        code, output = commands.run(
            "createsuperuser", "--noinput", "--username=ops", "--email=", DJANGO_SUPERUSER_PASSWORD=PASSWORD
        )
        assert code == 0, output
        assert "Log out" in site.sign_in("ops")
        code, output = commands.run("doctor", "--strict")
        assert code == 0, output

        schedule(commands, "tests.chatter", {"seconds": 1}, "says something")
        page = visible(site, "says something", "succeeded")
        assert "tick 1" in page

        schedule(commands, "tests.mark", {"directory": str(tmp_path), "seconds": 2}, "takes a while")
        started = wait_for(lambda: list(tmp_path.glob("[0-9]*.txt")), "a long run starts")
        codes = services.down()
        assert codes == {"web": [0], "producer": [0, 0], "worker": [0], "worker-standalone": [0]}, services.logs()
        words = [line.split()[0] for line in marks(tmp_path, int(started[0].stem))]
        assert words == ["start", "end"], "the run was not allowed to end"
    finally:
        commands.end()


def visible(site: Site, description: str, state: str) -> str:
    """Wait until an execution's page shows the schedule's description and `state`, and return the page."""

    def look() -> str:
        listed = site.get("/admin/scheduling/schedulerexecution/")
        for number in re.findall(r"/admin/scheduling/schedulerexecution/(\d+)/", listed):
            page = site.get(f"/admin/scheduling/schedulerexecution/{number}/change/")
            if description in page and state in page:
                return page
        return ""

    return wait_for(look, f"{description!r} is shown as {state}", 60)
