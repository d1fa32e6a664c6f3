"""A project of a company: people sign in with their e-mail address, ids are UUIDs, the pages are German, the time is
Berlin's, and the admin site is the project's own. PostgreSQL, and RabbitMQ with a virtual host of its own.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from tests.hosts.app import add_app
from tests.hosts.environments import linked
from tests.hosts.package import Package
from tests.hosts.project import Project, new_project
from tests.hosts.servers import database_setting, messages, virtual_host
from tests.hosts.story import EACH_MINUTE, add_schedule, ended, fails, republished, runs, scheduled, told_once
from tests.hosts.visitor import Visitor
from tests.support import wait_for

pytestmark = [pytest.mark.processes, pytest.mark.hosts, pytest.mark.rabbitmq]

EMAIL, PASSWORD = "ops@example.org", "correct horse battery staple"

PEOPLE = """
import uuid

from django.contrib.auth.models import AbstractUser, BaseUserManager
from django.db import models


class People(BaseUserManager):
    def create_superuser(self, email, password, **values):
        person = self.model(email=email, is_staff=True, is_superuser=True, **values)
        person.set_password(password)
        person.save()
        return person


class Person(AbstractUser):
    id = models.UUIDField(primary_key=True, default=uuid.uuid4)
    username = None
    email = models.EmailField(unique=True)
    USERNAME_FIELD = "email"
    REQUIRED_FIELDS = []
    objects = People()
"""

SITE = """
from django.contrib import admin
from django.contrib.admin.apps import AdminConfig


class ShopAdminSite(admin.AdminSite):
    site_header = "Shop der Firma"


class ShopAdminConfig(AdminConfig):
    default_site = "shop.site.ShopAdminSite"
"""

SETTINGS = """
AUTH_USER_MODEL = "people.Person"
INSTALLED_APPS = ["shop.site.ShopAdminConfig" if app == "django.contrib.admin" else app for app in INSTALLED_APPS]
INSTALLED_APPS += ["people"]
MIDDLEWARE.insert(2, "django.middleware.locale.LocaleMiddleware")
LANGUAGE_CODE = "de"
TIME_ZONE = "Europe/Berlin"
BROKER_URL = CRON_BROKER_URL = {broker!r}
"""


@pytest.fixture
def broker() -> Iterator[str]:
    """The URL of a virtual host."""
    with virtual_host() as url:
        yield url


@pytest.fixture
def project(package: Package, tmp_path: Path, broker: str, django_db_blocker: Any) -> Iterator[Project]:
    """The project, before its first migration."""
    with database_setting("postgres", django_db_blocker) as line:
        made = new_project(tmp_path / "host", linked(tmp_path / "environment", package, "postgres"))
        made.write("people/models.py", PEOPLE)
        made.write("people/migrations/__init__.py", "")
        made.write("shop/site.py", SITE)
        add_app(made)
        made.settings(line)
        made.settings(SETTINGS.format(broker=broker))
        yield made
        made.kill()


def test_a_project_of_a_company(project: Project, free_port: int, broker: str) -> None:
    assert "no issues" in project.manage("check")
    project.manage("makemigrations", "people")
    assert "No changes detected" in project.manage("makemigrations", "--check", "--dry-run")
    project.manage("migrate")
    project.manage("createsuperuser", "--noinput", f"--email={EMAIL}", DJANGO_SUPERUSER_PASSWORD=PASSWORD)

    project.start("run_scheduler")
    project.start("run_worker")
    web = project.start("runserver", "--noreload", f"127.0.0.1:{free_port}")
    project.until(web, "Quit the server")
    visitor = Visitor(free_port)
    page = visitor.sign_in(EMAIL, PASSWORD)
    assert page.soup.select_one("html[lang=de]")
    assert "Shop der Firma" in page.said()

    add_schedule(visitor, "sync_tokens", "* * * * *", EACH_MINUTE)
    add_schedule(visitor, "sync_tokens", "0 8 * * *", "at eight")
    runs(visitor)
    failed = fails(visitor)
    wait_for(lambda: messages(broker, "cron_scheduler_failed") == 1, "the failure is parked in RabbitMQ")
    republished(project, visitor, failed)
    wait_for(lambda: messages(broker, "cron_scheduler_failed") == 0, "the parked message is taken out")
    for name in ("dashboard", "scheduler", "schedulerexecution", "process", "review"):
        assert visitor.get(f"scheduling/{name}/").soup.select_one("html[lang=de]"), name
    assert next_hour(project, "at eight") == 8
    ended(visitor, scheduled(visitor), "good")
    assert project.stop() == [0, 0, 0]
    told_once(project)


def next_hour(project: Project, schedule: str) -> int:
    """The hour in Berlin at which a schedule runs next."""
    said = project.manage("cron", "show", schedule, "--json")
    found = json.loads(said[said.index("{") :])["next_runs"]["runs"][0]
    return datetime.fromisoformat(found).astimezone(ZoneInfo("Europe/Berlin")).hour
