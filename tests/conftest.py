"""Fixtures of the whole suite."""

from __future__ import annotations

import gc
import logging
import signal
import socket
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from django.test import TransactionTestCase
from django.utils import timezone as clock
from django.utils import translation
from hypothesis import settings
from pytest_django.plugin import DjangoDbBlocker

from scheduling import logs
from scheduling.broker.database import DatabaseBroker
from scheduling.core.history_sentences import entry_in_language
from scheduling.handlers import registry
from scheduling.models.exclusions import cache
from scheduling.operations import audit
from scheduling.processes import left_out
from scheduling.processes.guard import guard
from tests.hostile.fuzz import choose_seed
from tests.quick_flush import Flush
from tests.server_share import leave_out_other_shares, leaves_out_file
from tests.support import Clock, Commands

# A loaded machine may need any time for one example. With `CI` set, Hypothesis would try the same examples each time.
# It prints how a failure is repeated.
settings.register_profile("no deadline", deadline=None, derandomize=False, print_blob=True)
settings.load_profile("no deadline")


def pytest_configure() -> None:
    """Restore the default handling of SIGINT, SIGQUIT and SIGHUP, and choose the seed of the fuzz tests.

    If a shell starts the tests in the background, or `nohup` does, they ignore such a signal. Child processes would
    inherit this from the tests.
    """
    for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
    choose_seed()  # the processes of pytest-xdist inherit it


def pytest_report_header() -> str:
    """Name the seed of the fuzz tests, so that a failure can be repeated."""
    return f"fuzz: TEST_FUZZ_SEED={choose_seed()}"


@pytest.hookimpl(tryfirst=True)  # before pytest selects the tests by their marks
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark each test that uses the database. Only these tests run once more on each database server.

    Tests with the mark `any_database` are left out: what they show does not depend on the database.
    """
    for item in items:
        fixtures = getattr(item, "fixturenames", ())
        uses_database = item.get_closest_marker("django_db") or {"db", "transactional_db"} & set(fixtures)
        if uses_database and not item.get_closest_marker("any_database"):
            item.add_marker("database")
    leave_out_other_shares(config, items)


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Do not load a file whose tests all belong to the shares of other runs. Each process would need its time."""
    is_left_out = collection_path.match("test_*.py") and leaves_out_file(collection_path)
    return True if is_left_out else None


def pytest_collection_finish() -> None:
    """Keep the garbage collector from looking at all that the collected tests have loaded, again and again.

    That took a tenth to a fifth of the time of the tests of pages.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 50)


@pytest.fixture(autouse=True)
def nothing_left_out() -> Iterator[None]:
    """Forget the rows that a test's database refused. A later test may use their primary keys again."""
    yield
    left_out.executions.clear()
    left_out.schedules.clear()


@pytest.fixture(autouse=True)
def entries_have_known_texts(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Fail if a test writes an entry of the history whose text cannot be shown in another language."""
    unknown, write = [], audit.message

    def message(text: str, *arguments: Any) -> Any:
        with translation.override("de"):
            if text not in ("", "HTTP") and entry_in_language(text) == text:
                unknown.append(text)
        return write(text, *arguments)

    monkeypatch.setattr(audit, "message", message)
    yield
    assert unknown == [], "add the text to scheduling.core.history_sentences"


@pytest.fixture(autouse=True)
def knows_no_database() -> Iterator[None]:
    """Forget what this process knows about the beats of the test database. A test may take the beats back."""
    yield
    guard.forget()


@pytest.fixture(autouse=True)
def no_log_handler_stays() -> Iterator[None]:
    """Take away the log handlers that a command has added: pytest closes the stream that they write to."""
    loggers = [logging.getLogger(name) for name in (None, *logs.OWN)]
    before = [(logger, list(logger.handlers), logger.level) for logger in loggers]
    yield
    for logger, handlers, level in before:
        for handler in set(logger.handlers) - set(handlers):
            logger.removeHandler(handler)
        logger.setLevel(level)


@pytest.fixture(autouse=True)
def no_handler_stays() -> Iterator[None]:
    """Take away the handlers that a test has registered: a later test would get rows of them, which `doctor` names."""
    before = dict(registry._handlers)
    yield
    for key in registry._handlers.keys() - before.keys():
        del registry._handlers[key]


@pytest.fixture(autouse=True)
def knows_no_calendar() -> Iterator[None]:
    """Forget the prepared calendars. A later test may use their primary keys and times again."""
    yield
    cache.clear()


@pytest.fixture
def at(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """Set the clock to an instant."""

    def set_to(instant: datetime) -> datetime:
        monkeypatch.setattr(clock, "now", lambda: instant)
        return instant

    return set_to


@pytest.fixture(scope="session")
def django_db_setup(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[None]:
    """Leave what each transactional test leaves: no schedule and no alert rule of the first migration.

    A test then finds the same rows, whichever tests have run before it in its process. The first look gives the
    database its identity, so that no test counts that query.
    """
    with django_db_blocker.unblock():
        flush = Flush()
        flush()
        guard.look()
        guard.forget()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(TransactionTestCase, "_fixture_teardown", lambda _case: flush())
        yield


@pytest.fixture
def embedded() -> DatabaseBroker:
    """Return the database transport: messages travel through the executions table."""
    return DatabaseBroker()


@pytest.fixture
def commands(request: pytest.FixtureRequest, transactional_db: None, tmp_path: Path) -> Iterator[Commands]:
    """Provide an object that runs management commands on the test database. At the end, kill its processes."""
    for name in ("server", "broker_url"):
        if name in request.fixturenames:  # it ends later: a process that goes on would declare the deleted queues again
            request.getfixturevalue(name)
    started = Commands(tmp_path)
    yield started
    started.end()


@pytest.fixture
def free_port() -> int:
    """Return a port that is free now. Another process could take the port before the test uses it."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        number: int = probe.getsockname()[1]
    return number
