"""A project as `startproject` makes it: SQLite, the embedded transport, Django's own user. It follows the README.

CI runs it on Django 5.2, and on the newest Django 6.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.hosts.app import add_app, readme_sqlite
from tests.hosts.environments import linked
from tests.hosts.package import Package
from tests.hosts.project import Project, new_project
from tests.hosts.story import up_and_tell

pytestmark = [pytest.mark.processes, pytest.mark.hosts]


@pytest.fixture
def project(package: Package, tmp_path: Path) -> Iterator[Project]:
    """The project, before its first migration."""
    made = new_project(tmp_path / "host", linked(tmp_path / "environment", package))
    add_app(made)
    made.settings(readme_sqlite())
    yield made
    made.kill()


def test_a_plain_project(project: Project, free_port: int) -> None:
    assert "no issues" in project.manage("check")
    assert "No changes detected" in project.manage("makemigrations", "--check", "--dry-run")
    up_and_tell(project, free_port)
