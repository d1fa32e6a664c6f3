"""`run_web` uses gunicorn, or Django's server if gunicorn is missing. `run_web` serves static files in any project."""

from __future__ import annotations

import signal
import sys
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from django.contrib.staticfiles.handlers import StaticFilesHandler

from scheduling.management.commands.run_web import application_of_project
from tests.management.running import ROOT, Running, until


def test_a_project_that_serves_static_files_itself_is_left_alone() -> None:
    assert not isinstance(application_of_project(), StaticFilesHandler)


def test_a_project_that_does_not_gets_them_served(settings: Any) -> None:
    settings.MIDDLEWARE = [name for name in settings.MIDDLEWARE if "whitenoise" not in name]
    assert isinstance(application_of_project(), StaticFilesHandler)


@pytest.mark.processes
@pytest.mark.parametrize("with_gunicorn", [True, False])
def test_it_serves(with_gunicorn: bool, tmp_path: Path, free_port: int) -> None:
    path = ROOT
    if not with_gunicorn:
        # An empty package named gunicorn hides the real package, as on a machine without gunicorn.
        (tmp_path / "gunicorn").mkdir()
        (tmp_path / "gunicorn" / "__init__.py").touch()
        path = tmp_path
    env = {
        "DJANGO_SETTINGS_MODULE": "cronsite.settings",
        "ENV_FILE": "/nonexistent",
        "DATA_DIR": str(tmp_path),
        "SECRET_KEY": "tests",
        "PYTHONPATH": str(path),
    }
    address = f"http://127.0.0.1:{free_port}/static/admin/css/base.css"
    with Running([sys.executable, str(ROOT / "manage.py"), "run_web", "--port", str(free_port)], env) as running:

        def answers() -> bool:
            try:
                with urllib.request.urlopen(address) as response:
                    return response.status == 200
            except OSError:
                return False

        until(answers, "the site answers")
        running.send(signal.SIGTERM)
        running.ended()
        assert ("development server" in running.text) is not with_gunicorn
