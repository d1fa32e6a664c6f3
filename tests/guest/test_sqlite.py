"""SQLite needs no OPTIONS: our processes set its modes, and leave alone what the project has chosen."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.guest.project import GuestProject

pytestmark = [pytest.mark.processes, pytest.mark.any_database]

MODES = """
from django.core.management import call_command
from django.db import connection

def modes():
    with connection.cursor() as cursor:
        found = [cursor.execute(f"PRAGMA {name}").fetchone()[0] for name in ("journal_mode", "busy_timeout")]
    return [*found, connection.transaction_mode]

print(modes())
call_command("cleanup_executions", verbosity=0, skip_checks=False)
print(modes())
connection.close()
print(modes())
"""


def test_our_processes_set_the_modes_and_others_keep_theirs(guest: Callable[..., GuestProject]) -> None:
    project = guest().migrated()
    before, now, again = project.python(MODES).splitlines()[-3:]
    assert before == "['delete', 5000, None]"  # a process of the project that only imports this app
    assert now == again == "['wal', 20000, 'IMMEDIATE']"
    done = project.run("doctor", "--only", "database")
    assert done.returncode == 0, done.stdout
    assert "IMMEDIATE: writers take turns." in done.stdout


def test_the_options_of_the_project_stay(guest: Callable[..., GuestProject]) -> None:
    options = {"timeout": 3, "transaction_mode": "EXCLUSIVE", "init_command": "PRAGMA journal_mode=TRUNCATE;"}
    project = guest(f'DATABASES["default"]["OPTIONS"] = {options!r}').migrated()
    printed = project.python(MODES).splitlines()
    assert printed[-1] == printed[-2] == "['truncate', 3000, 'EXCLUSIVE']"
    assert "scheduling.W001" in project.run("check").stdout
