"""A site of a benchmark's own: this process and all that it starts work on one database and one broker."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def enter(directory: Path, database: str = "", broker: str = "database://", **environment: str) -> None:
    """Set the environment, migrate, and make Django ready; once in a process.

    Args:
        directory: for what the site writes.
        database: DATABASE_URL; empty for SQLite in the directory.
        environment: further settings.
    """
    os.environ.update(
        DATABASE_URL=database or f"sqlite:///{directory / 'db.sqlite3'}",
        BROKER_URL=broker,
        DATA_DIR=str(directory),
        SECRET_KEY="bench",  # noqa: S106 - nobody logs in
        EXTRA_APPS="tests.handlers",
        DJANGO_SETTINGS_MODULE="cronsite.settings",
        LOG_LEVEL="WARN",
        **environment,
    )
    subprocess.run([sys.executable, "manage.py", "migrate", "-v0"], cwd=ROOT, check=True)
    import django

    django.setup()
