"""Django system checks of the project in which this app is a guest.

The errors E008 to E011 stop every command. The warnings W006 to W008 stop no command.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from difflib import get_close_matches
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import django
from django.apps import apps
from django.conf import settings
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group
from django.core.checks import CheckMessage, Error, Tags, Warning, register
from django.db import DEFAULT_DB_ALIAS, router
from django.utils.module_loading import module_has_submodule

from scheduling import conf
from scheduling.models import Scheduler
from scheduling.processes.sqlite_place import in_memory

REPORTS = "cron_reports"
"""The label of our app `reports`."""

TASK_BACKENDS = {"scheduling.tasks.CronBackend", "scheduling.tasks.backend.CronBackend"}
"""The names of our backend in TASKS."""


@register("scheduling")
def check_use_tz(**_kwargs: Any) -> list[CheckMessage]:
    """E008: USE_TZ is False. Then Django refuses each instant with a zone, which all our instants have."""
    if settings.USE_TZ:
        return []
    text = "USE_TZ is False, so no schedule can be saved: their times have zones."
    hint = "Set USE_TZ = True. Django's documentation describes how a project moves there, under “Time zones”."
    return [Error(text, hint=hint, id="scheduling.E008")]


@register("scheduling")
def check_routers(**_kwargs: Any) -> list[CheckMessage]:
    """E009: DATABASE_ROUTERS send our tables, or those of users and groups, to another database than the default."""
    models = (Scheduler, get_user_model(), Group)
    found = {model._meta.label: router.db_for_write(model) for model in models}
    if set(found.values()) == {DEFAULT_DB_ALIAS}:
        return []
    places = ", ".join(f"{label} to {alias!r}" for label, alias in found.items())
    return [
        Error(
            f"DATABASE_ROUTERS send {places}. This app works on the database 'default', beside users and groups.",
            hint="Let the routers return 'default' or None for scheduling, cron_reports, auth and the user model.",
            id="scheduling.E009",
        )
    ]


@register("scheduling")
def check_sqlite_folder(**_kwargs: Any) -> list[CheckMessage]:
    """E010: the folder of the SQLite database does not exist. SQLite makes files, but no folders."""
    config = settings.DATABASES.get(DEFAULT_DB_ALIAS, {})
    name = str(config.get("NAME", ""))
    if not str(config.get("ENGINE", "")).endswith("sqlite3") or in_memory(name) or name.startswith("file:"):
        return []
    folder = Path(name).absolute().parent
    if folder.is_dir():
        return []
    hint = "Make it, or name another file in DATABASES (in the ready-made site: DATABASE_URL)."
    return [Error(f"The folder {folder} of the SQLite database does not exist.", hint=hint, id="scheduling.E010")]


@register(Tags.models, "scheduling")
def check_reports_app(**_kwargs: Any) -> list[CheckMessage]:
    """E011: our app `reports` is not installed, or a package of the project with the same name hides it."""
    if apps.is_installed("reports") and any(app.label == REPORTS for app in apps.get_app_configs()):
        return []
    spec = find_spec("reports")
    own = spec is not None and spec.origin is not None and Path(spec.origin).with_name("controller.py").is_file()
    if own:
        return [Error("The app 'reports' is missing.", hint='Add "reports" to INSTALLED_APPS.', id="scheduling.E011")]
    place = "" if spec is None else f" in {spec.origin or next(iter(spec.submodule_search_locations or ()), '')}"
    return [
        Error(
            f"The package 'reports'{place} is not the one of cronsite, and hides it.",
            hint="Move your package into another one, such as yourproject/reports, and keep `label = 'reports'` in its "
            'AppConfig: then tables and migrations stay as they are. INSTALLED_APPS names it "yourproject.reports", '
            'and our app "reports".',
            id="scheduling.E011",
        )
    ]


@register("scheduling")
def check_names(**_kwargs: Any) -> list[CheckMessage]:
    """W006: a name begins with CRON_, but this app has no such setting."""
    found: list[CheckMessage] = []
    for name in sorted(set(_given_names()) - set(conf.NAMES)):
        close = get_close_matches(name, conf.NAMES, n=1, cutoff=0.8)
        hint = f"Did you mean {close[0]}?" if close else SILENCE
        found.append(Warning(f"There is no setting {name}; it does nothing here.", hint=hint, id="scheduling.W006"))
    return found


SILENCE = "docs/configuration.md lists all. If another app reads it, add scheduling.W006 to SILENCED_SYSTEM_CHECKS."

OF_ENVIRONMENT = (
    "CRON_CHAT_", "CRON_WEBHOOK_", "CRON_PING_", "CRON_DEMO", "CRON_LOG_COLOUR", "CRON_CHILD", "CRON_EXECUTION_ID",
    "CRON_AS", "CRON_IMAGE",
)  # fmt: skip
"""Variables of the environment that are no settings begin so."""


def _given_names() -> Iterator[str]:
    yield from (name for name in dir(settings) if name.startswith("CRON_"))
    if getattr(settings, conf.SHORT_NAMES, False):  # the site of this repository reads the environment
        yield from (name for name in os.environ if name.startswith("CRON_") and not name.startswith(OF_ENVIRONMENT))


@register("scheduling")
def check_unread_broker(**_kwargs: Any) -> list[CheckMessage]:
    """W007: BROKER_URL names RabbitMQ, but does not count here. An installation could mean it."""
    if hasattr(settings, "CRON_BROKER_URL") or getattr(settings, conf.SHORT_NAMES, False):
        return []
    if not str(getattr(settings, "BROKER_URL", "")).startswith(("amqp://", "amqps://")):
        return []
    return [
        Warning(
            "BROKER_URL names RabbitMQ, but this app reads CRON_BROKER_URL, and uses the database as its queue.",
            hint='Set CRON_BROKER_URL to the same address, or to "database://" if that is what you want.',
            id="scheduling.W007",
        )
    ]


@register("scheduling")
def check_tasks(**_kwargs: Any) -> list[CheckMessage]:
    """W008: TASKS names our backend, an app has a module `tasks`, and there is no Tasks framework. So none runs."""
    backends = getattr(settings, "TASKS", None) or {}
    named = {one.get("BACKEND") for one in backends.values() if isinstance(one, dict)} if backends else set()
    if not named & TASK_BACKENDS or find_spec("django.tasks") or find_spec("django_tasks"):
        return []
    apps_with = [each.name for each in apps.get_app_configs() if module_has_submodule(each.module, "tasks")]
    found = sorted(name for name in apps_with if name != "scheduling")
    if not found:
        return []
    return [
        Warning(
            f"TASKS names CronBackend, but Django {django.get_version()} has no Tasks framework, and django-tasks is "
            f"not installed. So these modules are not imported, and their tasks do not run: "
            f"{', '.join(f'{name}.tasks' for name in found[:5])}.",
            hint="Install the extra `tasks` of this package (pip install django-tasks), then restart all processes.",
            id="scheduling.W008",
        )
    ]
