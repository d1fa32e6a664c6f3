"""The tests replace and delete the file of a real SQLite database while a process has it open."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.db import OperationalError, connections
from django.db.backends.sqlite3.base import DatabaseWrapper

from scheduling.processes import sqlite_file, upkeep
from scheduling.processes.question import Answer
from scheduling.processes.server_clock import ServerClock

pytestmark = pytest.mark.django_db


@pytest.fixture
def database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[DatabaseWrapper]:
    """A connection to a file with the table `place`, whose row says where the file came from."""
    make(tmp_path / "db.sqlite3", "first")
    settings = {**connections.settings["default"], "ENGINE": "django.db.backends.sqlite3", "OPTIONS": {}}
    own = DatabaseWrapper({**settings, "NAME": str(tmp_path / "db.sqlite3")}, "own")
    own.inc_thread_sharing()
    monkeypatch.setattr(sqlite_file, "connection", own)
    monkeypatch.setattr(upkeep, "sqlite_file", sqlite_file.SqliteFile())
    monkeypatch.setattr(upkeep, "close_old_connections", lambda: None)
    monkeypatch.setattr(upkeep, "ask_at_once", lambda questions: Answer(None, set(), None))
    yield own
    own.close()


def make(path: Path, place: str) -> None:
    with sqlite3.connect(path) as file:
        file.execute("CREATE TABLE place (name text)")
        file.execute("INSERT INTO place VALUES (?)", [place])


def place(database: DatabaseWrapper) -> str:
    with database.cursor() as cursor:
        cursor.execute("SELECT name FROM place")
        return str(cursor.fetchone()[0])


def clock() -> ServerClock:
    return ServerClock(ask=lambda: None)


def test_a_replaced_file_is_opened_again(
    database: DatabaseWrapper, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    process = upkeep.Upkeep(clock())
    for _turn in range(2):
        process.turn()
        assert place(database) == "first"
    assert not caplog.records
    make(tmp_path / "restored", "second")
    (tmp_path / "restored").rename(tmp_path / "db.sqlite3")
    assert place(database) == "first"  # the connection still has the old file
    process.turn()
    assert place(database) == "second"
    assert ["deleted or replaced" in record.message for record in caplog.records] == [True]


def test_a_deleted_file_is_not_written_to(
    database: DatabaseWrapper, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    process = upkeep.Upkeep(clock())
    process.turn()
    assert place(database) == "first"
    (tmp_path / "db.sqlite3").unlink()
    process.turn()
    with pytest.raises(OperationalError):
        place(database)
    assert len(caplog.records) == 1
