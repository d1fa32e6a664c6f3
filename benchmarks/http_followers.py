"""Followers of outputs beside other users: the third part of `benchmarks.http_api`."""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import socket
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from benchmarks.site import ROOT

FOLLOWERS, THREADS = 200, 4
TIMES = 2.0
"""The latency of a page beside the followers is at most so many times the latency without them."""


def followers(folder: Path, database: str, secret: str, seconds: float) -> int:
    """Print the latency of two pages alone and beside the followers. Returns how many pages miss the goal."""
    from scheduling.models import Output

    ids = list(Output.objects.order_by("-execution").values_list("execution", flat=True)[:FOLLOWERS])
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    command = [sys.executable, "manage.py", "run_web", "--port", str(port), "--threads", str(THREADS)]
    server = subprocess.Popen(command, cwd=ROOT)
    try:
        pages = {"GET /schedulers": _page(port, "/cron/schedulers", secret), "the dashboard": _dashboard(port)}
        for ask in pages.values():
            _until_answered(ask)
        alone = {name: _latencies(ask, seconds / 4) for name, ask in pages.items()}
        before = _processor(server.pid)
        crowd = Crowd(port, _secrets(len(ids)), ids, seconds)
        crowd.start()
        time.sleep(2)  # all of them have begun
        beside = {name: _latencies(ask, seconds / 2 - 2) for name, ask in pages.items()}
        crowd.join()
        used = (_processor(server.pid) - before) / crowd.taken
    finally:
        server.terminate()
        server.wait()
    rate = crowd.answers / crowd.taken
    print(f"{len(ids)} followers: {rate:.0f} answers a second, {crowd.errors} errors, {used:.0%} of a core", flush=True)
    missed = 0
    for name in pages:
        former, now = statistics.median(alone[name]), statistics.median(beside[name])
        missed += now > former * TIMES
        print(
            f"{name:20} alone {former:6.1f} ms (worst {max(alone[name]):.0f}), beside the followers {now:6.1f} ms "
            f"(worst {max(beside[name]):.0f}), {now / former:.2f} times",
            flush=True,
        )
    return missed


def _secrets(count: int) -> list[str]:
    """So many tokens, because a token may send `CRON_API_PER_MINUTE` requests only. Each user has 20 of them."""
    from django.contrib.auth.models import Group, User

    from scheduling.management.groups import VIEWER
    from scheduling.models import ApiToken
    from scheduling.operations.tokens import make_token

    found = []
    for number in range(0, count, 20):
        user, _ = User.objects.get_or_create(username=f"follower {number}", is_staff=True)
        user.groups.set(Group.objects.filter(name__in=[VIEWER, *(f"team {team}" for team in range(20))]))
        ApiToken.objects.filter(user=user).delete()
        found += [make_token(user, str(one))[1] for one in range(20)]
    return found[:count]


def _page(port: int, path: str, secret: str = "", cookie: str = "") -> Callable[[], None]:
    headers = {"Authorization": f"Bearer {secret}"} if secret else {"Cookie": cookie}

    def ask() -> None:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        connection.request("GET", path, headers=headers)
        response = connection.getresponse()
        response.read()
        connection.close()
        assert response.status == 200, response.status

    return ask


def _dashboard(port: int) -> Callable[[], None]:
    from django.contrib.auth.models import User
    from django.test import Client

    client = Client()
    client.force_login(User.objects.get(username="http superuser"))
    return _page(port, "/admin/scheduling/dashboard/", cookie=f"sessionid={client.cookies['sessionid'].value}")


def _until_answered(ask: Callable[[], None]) -> None:
    for _ in range(600):
        with suppress(OSError):
            return ask()
        time.sleep(0.1)
    raise SystemExit("the web server does not answer")


def _latencies(ask: Callable[[], None], seconds: float) -> list[float]:
    """Ask ten times a second at most. Returns milliseconds."""
    found, end = [], time.monotonic() + seconds
    while time.monotonic() < end:
        begin = time.perf_counter()
        ask()
        found.append((time.perf_counter() - begin) * 1000)
        time.sleep(max(0.0, 0.1 - found[-1] / 1000))
    return found


def _processor(pid: int) -> float:
    """The seconds of processor time of a process and its children."""
    pids = [pid, *map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split())]
    ticks = 0
    for each in pids:
        fields = Path(f"/proc/{each}/stat").read_text().rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


class Crowd(threading.Thread):
    """Followers that ask once a second, each with its cursor, evenly spread over the second.

    Attributes:
        answers, errors: how many requests were answered, and how many were not.
        taken: how long the crowd has asked, in seconds.
    """

    def __init__(self, port: int, secrets: list[str], ids: list[int], seconds: float) -> None:
        super().__init__()
        self._port, self._secrets, self._ids, self._seconds = port, secrets, ids, seconds
        self.answers = self.errors = 0
        self.taken = 0.0

    def run(self) -> None:
        begin = time.monotonic()
        asyncio.run(self._all())
        self.taken = time.monotonic() - begin

    async def _all(self) -> None:
        await asyncio.gather(*(self._follow(number, pk) for number, pk in enumerate(self._ids)))

    async def _follow(self, number: int, pk: int) -> None:
        start, cursor = time.monotonic() + number / len(self._ids), ""
        for turn in range(int(self._seconds)):
            await asyncio.sleep(max(0.0, start + turn - time.monotonic()))
            try:
                answer = await asyncio.wait_for(self._ask(number, f"/cron/executions/{pk}/output?after={cursor}"), 30)
                cursor = answer["cursor"]
                self.answers += 1
            except (OSError, TimeoutError, ValueError, KeyError):
                self.errors += 1

    async def _ask(self, number: int, path: str) -> Any:
        reader, writer = await asyncio.open_connection("127.0.0.1", self._port)
        try:
            head = f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {self._secrets[number]}\r\n"
            writer.write(f"{head}Connection: close\r\n\r\n".encode())
            text = await reader.read()
        finally:
            writer.close()
        return json.loads(text.partition(b"\r\n\r\n")[2])
