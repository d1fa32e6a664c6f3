"""A statement or a COMMIT that a suspended server does not answer ends after the limit, and the process goes on."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.db import DatabaseError, connection, transaction
from django.db.backends.base.base import BaseDatabaseWrapper

from scheduling.core.database_errors import Verdict
from scheduling.models import Worker
from scheduling.processes.answer_limit import AnswerLimit
from scheduling.processes.database import verdict_of
from tests.contract.proxy import Proxy
from tests.support import wait_for

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def proxied() -> Iterator[tuple[BaseDatabaseWrapper, Proxy]]:
    """A second connection to the test database, through a proxy that can freeze like a suspended server."""
    if connection.vendor == "sqlite":
        pytest.skip("SQLite has no server")
    config = connection.settings_dict
    default = 5432 if connection.vendor == "postgresql" else 3306
    proxy = Proxy(config["HOST"] or "127.0.0.1", int(config["PORT"] or default))
    own = connection.copy()
    own.settings_dict = {**config, "HOST": "127.0.0.1", "PORT": str(proxy.port)}
    yield own, proxy
    own.close()
    proxy.close()


def ask(own: BaseDatabaseWrapper) -> int:
    with own.cursor() as cursor:
        cursor.execute("SELECT 1")
        return int(cursor.fetchone()[0])


def test_a_statement_without_an_answer_ends(proxied: tuple[BaseDatabaseWrapper, Proxy]) -> None:
    own, proxy = proxied
    with AnswerLimit(own, 1.0):
        assert ask(own) == 1
        proxy.freeze()
        with pytest.raises(DatabaseError) as raised:
            ask(own)
        assert verdict_of(raised.value) is Verdict.AWAY
        proxy.thaw()
        own.close()
        assert wait_for(lambda: ask(own), "a new connection") == 1


def test_a_commit_without_an_answer_ends(proxied: tuple[BaseDatabaseWrapper, Proxy]) -> None:
    own, proxy = proxied
    with AnswerLimit(own, 1.0):
        own.ensure_connection()
        own.set_autocommit(False)
        with own.cursor() as cursor:
            cursor.execute(f"UPDATE {Worker._meta.db_table} SET name = name WHERE id < 0")
        proxy.freeze()
        with pytest.raises(DatabaseError) as raised:
            own.commit()
        assert verdict_of(raised.value) is Verdict.AWAY
        proxy.thaw()


def test_an_idle_connection_stays(proxied: tuple[BaseDatabaseWrapper, Proxy]) -> None:
    own, _proxy = proxied
    with AnswerLimit(own, 0.2) as limit:
        assert ask(own) == 1
        first = own.connection
        for _check in range(3):
            number = limit._number
            limit._over.wait(0.2)
            assert limit._number == number
        assert ask(own) == 1
        assert own.connection is first
    assert not own.execute_wrappers


def test_sqlite_has_no_limit() -> None:
    if connection.vendor != "sqlite":
        pytest.skip("only for SQLite")
    with AnswerLimit(connection, 0.1), transaction.atomic():
        assert not connection.execute_wrappers
