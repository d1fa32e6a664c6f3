"""Makes a database of a test's own on one of the servers that TEST_DATABASE_URLS names, and drops it at the end."""

from __future__ import annotations

import os
import secrets
import urllib.parse
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.db import DatabaseError
from django.db.utils import ConnectionHandler

from cronsite.settings import database

DEFAULT = "mysql://root@127.0.0.1:3306/cron postgres://postgres@127.0.0.1:5432/cron"


def server_urls() -> list[str]:
    """The URLs of the database servers."""
    return [url for url in os.environ.get("TEST_DATABASE_URLS", DEFAULT).split() if not url.startswith("sqlite")]


def missing(what: str) -> None:
    """Fail the test in CI, and skip the test elsewhere. `what` is the message."""
    if os.environ.get("CI"):
        pytest.fail(what)
    pytest.skip(what)


@contextmanager
def own_database(url: str, blocker: Any) -> Iterator[str]:
    """Provide the URL of a new, empty database on the server of this URL.

    Args:
        blocker: the fixture `django_db_blocker`.
    """
    parts = urllib.parse.urlsplit(url)
    name = f"cron_e2e_{secrets.token_hex(4)}"

    def ask(statement: str) -> None:
        connection: Any = ConnectionHandler({"default": database(url)})["default"]
        with blocker.unblock(), connection._nodb_cursor() as cursor:
            cursor.execute(statement)

    try:
        ask(f"CREATE DATABASE {name}")
    except (DatabaseError, ImproperlyConfigured) as error:
        missing(f"no database server at {parts.hostname}: {error}")
    try:
        yield urllib.parse.urlunsplit(parts._replace(path=f"/{name}"))
    finally:
        ask(f"DROP DATABASE {name}")
