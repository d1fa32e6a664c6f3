"""`cron` as a process: wrong usage, a database that is away, and a reader that ends first."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import ROOT, Commands

pytestmark = pytest.mark.processes


@pytest.mark.any_database
def test_wrong_usage_and_a_database_that_is_away(tmp_path: Path) -> None:
    made = Commands(tmp_path, DATABASE_URL=f"sqlite:///{tmp_path / 'empty.sqlite3'}")
    usage, away = made.start("cron", "list", "--limit", "0"), made.start("cron", "list", "--json")
    assert (usage.wait(120), away.wait(120)) == (2, 5), made.log(away)
    assert "from 1 to 1000" in made.log(usage)
    assert '"code": "DATABASE_AWAY"' in made.log(away)
    assert "Traceback" not in made.log(usage) + made.log(away)


@pytest.mark.parametrize(
    "line", ["cron list --json", "doctor", "make_groups", "audit_occurrences", "cleanup_executions"]
)
def test_a_closed_pipe_is_no_error(commands: Commands, line: str) -> None:
    command = [sys.executable, "manage.py", *line.split()]
    process = subprocess.Popen(
        command, cwd=ROOT, env=commands.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    said = process.stderr.read()
    process.stderr.close()
    assert (process.wait(120), said) == (141, "")
