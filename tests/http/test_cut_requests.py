"""Requests whose connection is cut, and which are sent again with their Idempotency-Key, are carried out once each."""

from __future__ import annotations

import json
import os
import random
import socket
import time
import uuid
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any

import pytest

from scheduling.models import Scheduler, SchedulerExecution
from scheduling.operations.tokens import make_token
from tests.factories import SchedulerFactory, UserFactory
from tests.hostile.fuzz import choose_seed
from tests.http.client import started_web
from tests.support import Commands

POSTS = int(os.environ.get("TEST_CUT_POSTS", "40"))
KILLS = int(os.environ.get("TEST_CUT_KILLS", "1"))
"""How often the web server is killed and started again meanwhile."""
CLIENTS = 4
PATIENCE = 90.0
"""Seconds within which each request is answered at last."""

Done = list[tuple[str, bytes]]


class Cutter:
    """Sends requests over plain sockets, and cuts some connections at a random place."""

    def __init__(self, port: int, secret: str, random_: random.Random) -> None:
        self.port, self.secret, self.random = port, secret, random_

    def post(self, path: str, body: Any, key: str) -> tuple[int, bytes]:
        """Send a request until it is answered. Most of the first tries are cut, on the way there or back."""
        text = json.dumps(body).encode()
        head = (
            f"POST /cron/{path} HTTP/1.1\r\nHost: 127.0.0.1:{self.port}\r\nAuthorization: Bearer {self.secret}\r\n"
            f"Idempotency-Key: {key}\r\nContent-Type: application/json\r\nContent-Length: {len(text)}\r\n"
            "Connection: close\r\n\r\n"
        )
        request = head.encode() + text
        number, end = 0, time.monotonic() + PATIENCE
        while time.monotonic() < end:
            found = self._try(request, cut=number < 2 and self.random.random() < 0.8)
            if found is not None and found[0] not in (409, 503):
                return found
            number += 1
            time.sleep(0.01 if number < 3 else 0.2)  # the server is killed, and not started again yet
        raise AssertionError("never answered")

    def _try(self, request: bytes, cut: bool) -> tuple[int, bytes] | None:
        try:
            with socket.create_connection(("127.0.0.1", self.port), 5) as one:
                if cut and self.random.random() < 0.3:
                    one.sendall(request[: self.random.randrange(len(request))])
                    return None
                one.sendall(request)
                if cut:  # the server has the request, and the answer gets lost
                    one.settimeout(self.random.random() * 0.02)
                    one.recv(1)
                    return None
                whole = b""
                one.settimeout(60)
                while part := one.recv(65_536):
                    whole += part
        except OSError:
            return None
        if b"\r\n\r\n" not in whole:
            return None
        top, _gap, body = whole.partition(b"\r\n\r\n")
        return int(top.split()[1]), body


@pytest.fixture
def web(commands: Commands, free_port: int) -> int:
    """Provide the port of a web server."""
    started_web(commands, free_port)
    return free_port


def some(cutter: Cutter, schedule: Scheduler, worker: str, posts: int) -> Done:
    """Send requests, and each of them once more after its answer. Returns what was asked for, and the answers."""
    done = []
    for _ in range(posts):
        key = str(uuid.UUID(int=cutter.random.getrandbits(128)))
        kind = cutter.random.choice(["run", "make"])
        path, body = f"schedulers/{schedule.pk}/run", {}
        if kind == "make":
            path, body = "schedulers", {"schedule": "0 8 * * *", "worker": worker}
        status, answer = cutter.post(path, body, key)
        assert status in (201, 202), answer
        assert cutter.post(path, body, key) == (status, answer)
        done.append((kind, answer))
    return done


def kill_now_and_then(commands: Commands, port: int, futures: list[Future[Done]]) -> None:
    for _ in range(KILLS):
        if not wait(futures, 1.5).not_done:
            break
        commands.started[-1].kill()
        commands.started[-1].wait()
        started_web(commands, port)


@pytest.mark.processes
@pytest.mark.django_db(transaction=True)
def test_requests_that_are_cut_and_repeated_are_carried_out_once_each(commands: Commands, web: int) -> None:
    row, user, seed = SchedulerFactory(), UserFactory(superuser=True), choose_seed()
    worker = row.worker.name
    _token, secret = make_token(user, "cuts")
    cutters = [Cutter(web, secret, random.Random(f"{seed} {number}")) for number in range(CLIENTS)]
    with ThreadPoolExecutor(CLIENTS) as pool:
        futures = [pool.submit(some, cutter, row, worker, POSTS // CLIENTS) for cutter in cutters]
        kill_now_and_then(commands, web, futures)
        answers = [each for future in futures for each in future.result()]
    ids: dict[str, set[Any]] = {"run": set(), "make": set()}
    for kind, answer in answers:
        ids[kind].add(json.loads(answer)["id"])
    assert len(ids["run"]) + len(ids["make"]) == len(answers) == POSTS
    assert set(SchedulerExecution.objects.values_list("pk", flat=True)) == ids["run"]
    assert set(Scheduler.objects.values_list("pk", flat=True)) - {row.pk} == ids["make"]
