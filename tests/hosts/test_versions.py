"""A plain project on other versions of Python and Django, which pip chooses. `make test-hosts` runs it.

TEST_HOST_PYTHONS names the interpreters, separated by spaces. `python3.12:6.0` asks for a version of Django; otherwise
it is the newest one that the wheel allows.
"""

from __future__ import annotations

import logging
import os
from pathlib import Path

import pytest

from tests.hosts.app import add_app, readme_sqlite
from tests.hosts.environments import BY_MAKE, downloaded
from tests.hosts.package import Package, run
from tests.hosts.project import new_project
from tests.hosts.story import up_and_tell

PAIRS = os.environ.get("TEST_HOST_PYTHONS", "").split()
NONE = pytest.param("", marks=pytest.mark.skip(reason="TEST_HOST_PYTHONS names no interpreter"))

pytestmark = [pytest.mark.processes, pytest.mark.hosts, BY_MAKE]


@pytest.mark.parametrize("pair", PAIRS or [NONE])
def test_a_plain_project(pair: str, package: Package, tmp_path: Path, free_port: int) -> None:
    interpreter, _colon, version = pair.partition(":")
    django = f"Django=={version}.*" if version else "Django"
    python = downloaded(tmp_path / "environment", interpreter, str(package.wheel), django)
    found = run([str(python), "-m", "django", "--version"], tmp_path).strip()
    assert found.startswith(version)
    logging.getLogger(__name__).warning("%s has Django %s", interpreter, found)  # pytest -rP shows it
    project = new_project(tmp_path / "host", python)
    add_app(project)
    project.settings(readme_sqlite())
    try:
        up_and_tell(project, free_port)
    finally:
        project.kill()
