"""Fixtures of the tests of the imports: the tables of the real django-celery-beat, and a user."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib import admin
from django.db import connection
from django.test.utils import modify_settings

from tests.moving.beat_rows import Beat

PACKAGES = ("celery", "django_celery_beat", "timezone_field", "crontab")


@pytest.fixture(autouse=True)
def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    """No table is cut, also where pytest-xdist has set the width."""
    monkeypatch.delenv("COLUMNS", raising=False)


@pytest.fixture
def root(db: None, django_user_model: Any) -> Any:
    """The only superuser, in whose name a command changes something."""
    return django_user_model.objects.create_superuser("root", "root@example.org", "secret")


@pytest.fixture
def beat(transactional_db: None) -> Iterator[Any]:
    """The models of the real package, with their tables. Without the package, the test is skipped; in CI, it fails."""
    missing = [name for name in PACKAGES if importlib.util.find_spec(name) is None]
    if missing:
        if os.environ.get("CI"):
            pytest.fail(f"not installed: {', '.join(missing)}")
        pytest.skip(f"not installed: {', '.join(missing)} (the Makefile does)")
    with modify_settings(INSTALLED_APPS={"append": "django_celery_beat"}):
        from django_celery_beat import models

        made = [
            models.SolarSchedule, models.IntervalSchedule, models.ClockedSchedule, models.CrontabSchedule,
            models.PeriodicTasks, models.PeriodicTask,
        ]  # fmt: skip
        with connection.schema_editor() as editor:
            for model in made:
                editor.create_model(model)
        try:
            yield models
        finally:
            for model in made:  # the app's admin module has registered them, and other tests walk the admin
                if admin.site.is_registered(model):
                    admin.site.unregister(model)
            with connection.schema_editor() as editor:
                for model in reversed(made):
                    editor.delete_model(model)


@pytest.fixture
def beat_root(beat: Any, django_user_model: Any) -> Any:
    """The superuser of a test with the tables of beat."""
    return django_user_model.objects.create_superuser("root", "root@example.org", "secret")


@pytest.fixture
def rows(beat: Any, beat_root: Any) -> Beat:
    """Makes rows of the real package."""
    return Beat(beat)
