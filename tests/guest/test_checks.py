"""A project in which this app cannot work gets a sentence with the way out, not a traceback."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.guest.project import GuestProject
from tests.support import ROOT

pytestmark = [pytest.mark.processes, pytest.mark.any_database]

ROUTER = """
class Router:
    def db_for_write(self, model, **hints):
        return "jobs" if model._meta.app_label in ("scheduling", "cron_reports") else None
    db_for_read = db_for_write
"""


def check(project: GuestProject) -> tuple[int, str]:
    done = project.run("check")
    return done.returncode, " ".join(done.stdout.split())


@pytest.mark.parametrize(
    ("settings", "code", "said"),
    [
        ('MEDIA_ROOT = BASE_DIR / "media"', 0, ["no issues"]),
        ("", 0, ["reports.W002", "MEDIA_ROOT is not set", 'STORAGES["artefacts"]']),
        ("USE_TZ = False", 1, ["scheduling.E008", "Set USE_TZ = True"]),
        (
            "CRON_MAX_RETRYS = 5",
            0,
            ["scheduling.W006", "There is no setting CRON_MAX_RETRYS", "mean CRON_MAX_RETRIES?"],
        ),
        ("CRON_CLASSES = []", 0, ["scheduling.W006", "add scheduling.W006 to SILENCED_SYSTEM_CHECKS"]),
        ('BROKER_URL = "amqp://cron:sesame@a/"', 0, ["scheduling.W007", "this app reads CRON_BROKER_URL"]),
        (
            'DATABASES["default"]["NAME"] = BASE_DIR / "var" / "db"',
            1,
            ["scheduling.E010", "var of the SQLite database"],
        ),
        (
            'DATABASES["jobs"] = DATABASES["default"]; DATABASE_ROUTERS = ["config.routers.Router"]',
            1,
            ["scheduling.E009", "scheduling.Scheduler to 'jobs'", "beside users and groups"],
        ),
        ('INSTALLED_APPS.remove("reports")', 1, ["scheduling.E011", 'Add "reports" to INSTALLED_APPS']),
    ],
)
def test_checks_of_the_project(guest: Callable[..., GuestProject], settings: str, code: int, said: list[str]) -> None:
    project = guest(settings)
    project.write("config/routers.py", ROUTER)
    found, text = check(project)
    assert found == code, text
    for words in said:
        assert words in text
    assert "Traceback" not in text
    assert "sesame" not in text


def test_a_foreign_package_of_the_name_reports_is_recognised(guest: Callable[..., GuestProject]) -> None:
    project = guest()
    project.write("reports/__init__.py", "")
    project.write("reports/models.py", "from django.db import models\n\nclass Report(models.Model):\n    pass\n")
    for command in ("check", "migrate"):
        done = project.run(command)
        text = " ".join(done.stdout.split())
        assert done.returncode == 1
        assert "scheduling.E011" in text
        assert f"{project.folder}/reports/__init__.py is not the one of cronsite" in text
        assert "keep `label = 'reports'`" in text


def test_the_way_out_of_a_foreign_package_works(guest: Callable[..., GuestProject]) -> None:
    project = guest('INSTALLED_APPS.append("company.reports.apps.Config"); MEDIA_ROOT = BASE_DIR / "media"')
    project.write("company/__init__.py", "")
    project.write("company/reports/__init__.py", "")
    app = "from django.apps import AppConfig\n\nclass Config(AppConfig):\n"
    project.write("company/reports/apps.py", f'{app}    name = "company.reports"\n    label = "reports"\n')
    assert check(project) == (0, "System check identified no issues (0 silenced).")
    project.migrated()


NEIGHBOURS = """
import logging
MEDIA_ROOT = BASE_DIR / "media"
BROKER_URL = "redis://localhost:6379/0"
LOG_FORMAT = "%(message)s"
LOG_LEVEL = "TRACE"
CRON_LOG_LEVEL = logging.WARNING
"""


def test_settings_of_neighbours_do_no_harm(guest: Callable[..., GuestProject]) -> None:
    project = guest(NEIGHBOURS).migrated()
    assert check(project) == (0, "System check identified no issues (0 silenced).")
    project.python('from scheduling.api import run\nrun("broken")')
    done = project.run("run_worker", "--max-runs", "1")
    assert done.returncode == 0, done.stdout
    assert "PERMANENTLY FAILED TASK" in done.stdout
    assert "[INFO]" not in done.stdout  # CRON_LOG_LEVEL is a number


def test_a_level_of_our_own_that_is_unknown_is_named(guest: Callable[..., GuestProject]) -> None:
    code, text = check(guest('CRON_LOG_LEVEL = "LOUD"'))
    assert (code, "CRON_LOG_LEVEL is 'LOUD'" in text) == (1, True)


@pytest.mark.parametrize("command", ["run_worker", "run_scheduler", "cleanup_executions"])
def test_a_forgotten_migrate_ends_the_command_with_a_sentence(guest: Callable[..., GuestProject], command: str) -> None:
    done = guest().run(command)
    assert done.returncode == 1
    assert done.stdout.splitlines()[-1] == (
        "CommandError: The database has no tables of this app yet. Run: manage.py migrate"
    )
    assert "Traceback" not in done.stdout


KEPT = {name: value for name, value in os.environ.items() if name in {"PATH", "HOME", "LANG", "TMPDIR"}}


def test_migrate_of_the_site_makes_the_data_folder(tmp_path: Path) -> None:
    environment = {**KEPT, "PYTHONPATH": str(ROOT), "SECRET_KEY": "guest", "CRON_MAX_RETRYS": "3"}
    done = subprocess.run(
        [sys.executable, "-m", "cronsite", "migrate"],
        cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "var" / "db.sqlite3").is_file()
    assert (tmp_path / "var").stat().st_mode & 0o777 == 0o700
    assert "There is no setting CRON_MAX_RETRYS" in done.stderr  # a variable of the environment is named, too


def test_without_migrate_the_site_names_the_missing_folder(tmp_path: Path) -> None:
    environment = {**KEPT, "PYTHONPATH": str(ROOT), "SECRET_KEY": "guest"}
    done = subprocess.run(
        [sys.executable, "-m", "cronsite", "run_scheduler"],
        cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    assert f"The folder {tmp_path / 'var'} of the SQLite database does not exist." in done.stderr
