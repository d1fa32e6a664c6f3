"""`run_web` starts gunicorn, or Django's server if gunicorn is missing. It also serves static files."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from django.contrib.staticfiles.handlers import StaticFilesHandler

from scheduling.management.commands.run_web import application_of_project
from scheduling.processes.loaded_code import EXIT_NEW_CODE
from tests.management.running import ROOT, Running, answers, environment, until


def test_a_project_that_serves_static_files_gets_no_second_handler() -> None:
    assert not isinstance(application_of_project(), StaticFilesHandler)


def test_another_project_gets_a_handler_for_static_files(settings: Any) -> None:
    settings.MIDDLEWARE = [name for name in settings.MIDDLEWARE if "whitenoise" not in name]
    assert isinstance(application_of_project(), StaticFilesHandler)


def hide_gunicorn(folder: Path) -> None:
    """Make an empty package with the name gunicorn. In an import path, it hides the real package."""
    (folder / "gunicorn").mkdir()
    (folder / "gunicorn" / "__init__.py").touch()


@pytest.mark.processes
@pytest.mark.parametrize("with_gunicorn", [True, False])
def test_static_files_are_served(with_gunicorn: bool, tmp_path: Path, free_port: int) -> None:
    if not with_gunicorn:
        hide_gunicorn(tmp_path)
    env = {**environment(tmp_path), "PYTHONPATH": str(ROOT if with_gunicorn else tmp_path)}
    address = f"http://127.0.0.1:{free_port}/static/admin/css/base.css"
    with Running([sys.executable, str(ROOT / "manage.py"), "run_web", "--port", str(free_port)], env) as running:
        until(lambda: answers(address), "the site answers")
        running.send(signal.SIGTERM)
        running.ended()
        assert ("development server" in running.text) is not with_gunicorn


@pytest.mark.processes
@pytest.mark.parametrize("with_gunicorn", [True, False])
def test_new_code_ends_the_server(with_gunicorn: bool, tmp_path: Path, free_port: int) -> None:
    if not with_gunicorn:
        hide_gunicorn(tmp_path)
    app = tmp_path / "mended"
    app.mkdir()
    (app / "__init__.py").touch()
    handlers = app / "workers.py"
    handlers.write_text("")
    env = {**environment(tmp_path), "EXTRA_APPS": "mended", "PYTHONPATH": f"{tmp_path}:{ROOT}"}
    command = [sys.executable, str(ROOT / "manage.py"), "run_web", "--restart-on-change", "--port", str(free_port)]
    with Running(command, env) as running:
        until(lambda: answers(f"http://127.0.0.1:{free_port}/static/admin/css/base.css"), "the site answers")
        handlers.write_text("# changed\n")
        os.utime(handlers, (time.time() + 5, time.time() + 5))
        assert running.ended() == EXIT_NEW_CODE, running.text
