"""What a host gets on the servers of the tests: a database and a virtual host of its own."""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import unquote, urlsplit

import pika
import pytest

from cronsite.settings import database
from tests.contract.server import URL, require
from tests.own_database import missing, own_database, server_urls

SHOWN = ("ENGINE", "NAME", "USER", "PASSWORD", "HOST", "PORT")


@contextmanager
def database_setting(scheme: str, blocker: Any) -> Iterator[str]:
    """Provide the line of DATABASES, as a project writes it, for a new database on the server of this scheme."""
    urls = [url for url in server_urls() if url.startswith(scheme)]
    if not urls:
        pytest.skip(f"TEST_DATABASE_URLS names no {scheme}")
    with own_database(urls[0], blocker) as url:
        found = database(url)
        yield f"DATABASES = {{'default': { {name: found[name] for name in SHOWN} }}}"


@contextmanager
def virtual_host() -> Iterator[str]:
    """Provide the URL of a new virtual host of RabbitMQ. At the end it is deleted, with its queues."""
    require()
    parts = urlsplit(URL)
    name, user = f"host-{secrets.token_hex(4)}", unquote(parts.username or "guest")
    _control("add_vhost", name)
    try:
        _control("set_permissions", "-p", name, user, ".*", ".*", ".*")
        yield f"{parts.scheme}://{parts.netloc}/{name}"
    finally:
        _control("delete_vhost", name)


def messages(url: str, queue: str) -> int:
    """How many messages wait in a queue."""
    with pika.BlockingConnection(pika.URLParameters(url)) as connection:
        count: int = connection.channel().queue_declare(queue, passive=True).method.message_count
        return count


def _control(*words: str) -> None:
    command = ["rabbitmqctl", "--quiet", *words]
    if os.geteuid() != 0:
        command = ["sudo", "-n", *command]
    if shutil.which(command[0]) is None:
        missing(f"{command[0]} is not here, and only RabbitMQ's own command makes virtual hosts")
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    if done.returncode:
        missing(f"{' '.join(command[:3])} failed: {done.stderr.strip()[-300:]}")
