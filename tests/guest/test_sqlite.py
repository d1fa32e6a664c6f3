"""SQLite needs no OPTIONS: the app sets its modes in all processes, and leaves what the project has chosen."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.guest.project import GuestProject

pytestmark = [pytest.mark.processes, pytest.mark.any_database]

MODES = """
from django.db import connection, transaction

def modes():
    with connection.cursor() as cursor:
        found = [cursor.execute(f"PRAGMA {name}").fetchone()[0] for name in ("journal_mode", "busy_timeout")]
    return [*found, connection.transaction_mode]

print(modes())
connection.close()
print(modes())
"""


def test_a_project_needs_no_options(guest: Callable[..., GuestProject]) -> None:
    project = guest().migrated()
    assert project.python(MODES).splitlines()[-2:] == 2 * ["['wal', 20000, 'IMMEDIATE']"]
    done = project.run("doctor", "--only", "database")
    assert done.returncode == 0, done.stdout
    assert "IMMEDIATE: writers take turns." in done.stdout
    assert "scheduling.W001" not in project.run("check").stdout


def test_the_options_of_the_project_stay(guest: Callable[..., GuestProject]) -> None:
    options = {"timeout": 3, "transaction_mode": "EXCLUSIVE", "init_command": "PRAGMA journal_mode=TRUNCATE;"}
    project = guest(f'DATABASES["default"]["OPTIONS"] = {options!r}').migrated()
    assert project.python(MODES).splitlines()[-1] == "['truncate', 3000, 'EXCLUSIVE']"
    assert "scheduling.W001" in project.run("check").stdout
