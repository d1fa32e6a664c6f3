"""`run_web` starts gunicorn, or Django's server if gunicorn is missing. It also serves static files."""

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


def test_a_project_that_serves_static_files_gets_no_second_handler() -> None:
    assert not isinstance(application_of_project(), StaticFilesHandler)


def test_another_project_gets_a_handler_for_static_files(settings: Any) -> None:
    settings.MIDDLEWARE = [name for name in settings.MIDDLEWARE if "whitenoise" not in name]
    assert isinstance(application_of_project(), StaticFilesHandler)


@pytest.mark.processes
@pytest.mark.parametrize("with_gunicorn", [True, False])
def test_static_files_are_served(with_gunicorn: bool, tmp_path: Path, free_port: int) -> None:
    path = ROOT
    if not with_gunicorn:
        # An empty package with the name gunicorn hides the real package.
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
