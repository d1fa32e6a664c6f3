"""Sets up a site for one benchmark. The benchmark and its child processes use the same database and broker."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def enter(directory: Path, database: str = "", broker: str = "database://", **environment: str) -> None:
    """Set the environment variables, migrate the database and set up Django. Call this function once per process.

    Args:
        directory: the data folder.
        database: the value of DATABASE_URL. An empty value means an SQLite file in `directory`.
        broker: the value of BROKER_URL.
        environment: further environment variables. They replace the default values.
    """
    defaults = {
        "DATABASE_URL": database or f"sqlite:///{directory / 'db.sqlite3'}",
        "BROKER_URL": broker,
        "DATA_DIR": str(directory),
        "SECRET_KEY": "bench",  # used only by this process
        "EXTRA_APPS": "tests.apps.sample",
        "DJANGO_SETTINGS_MODULE": "cronsite.settings",
        "LOG_LEVEL": "WARN",
    }
    os.environ.update(defaults | environment)
    subprocess.run([sys.executable, "manage.py", "migrate", "-v0"], cwd=ROOT, check=True)
    import django

    django.setup()
