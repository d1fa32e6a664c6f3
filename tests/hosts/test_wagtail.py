"""A project of wagtail on MariaDB, whose pages go live by a schedule. `make test-hosts` runs it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.hosts.app import add_app
from tests.hosts.environments import BY_MAKE, downloaded
from tests.hosts.package import Package
from tests.hosts.project import Project, new_project
from tests.hosts.servers import database_setting
from tests.hosts.story import ended, run_once, tell, told_once
from tests.hosts.visitor import Visitor

pytestmark = [pytest.mark.processes, pytest.mark.hosts, BY_MAKE]

PASSWORD = "correct horse battery staple"

LATER = """
from datetime import timedelta

from django.utils import timezone
from home.models import HomePage

page = HomePage(title="News", slug="news", live=False, go_live_at=timezone.now() + timedelta(seconds=1))
HomePage.objects.get().add_child(instance=page)
page.save_revision(approved_go_live_at=timezone.now())
"""

LIVE = "from wagtail.models import Page; print('live:', Page.objects.get(slug='news').live)"


@pytest.fixture
def project(package: Package, tmp_path: Path, django_db_blocker: Any) -> Iterator[Project]:
    """The project, before its first migration."""
    python = downloaded(tmp_path / "environment", sys.executable, f"{package.wheel}[mysql]", "wagtail")
    with database_setting("mysql", django_db_blocker) as line:
        made = new_project(tmp_path / "host", python, ("wagtail.bin.wagtail", "start"))
        add_app(made)
        made.settings(line)
        made.settings('CRON_COMMANDS = ["publish_scheduled"]')
        yield made
        made.kill()


def test_a_project_of_wagtail(project: Project, free_port: int) -> None:
    project.manage("migrate")
    project.manage(
        "createsuperuser", "--noinput", "--username=ops", "--email=ops@example.org", DJANGO_SUPERUSER_PASSWORD=PASSWORD
    )
    project.manage("shell", "-c", LATER)
    assert "live: False" in project.manage("shell", "-c", LIVE)

    up = project.start("up", "--port", str(free_port))
    assert "/django-admin/" in project.until(up, "Ctrl-C stops everything")
    visitor = Visitor(free_port, "/django-admin/")
    visitor.sign_in("ops", PASSWORD)
    ended(visitor, run_once(visitor, "run_command", command="publish_scheduled"), "good")
    assert "live: True" in project.manage("shell", "-c", LIVE)
    tell(project, visitor)
    assert project.stop() == [0], project.log(up)
    told_once(project)
