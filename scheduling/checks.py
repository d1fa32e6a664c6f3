"""System checks: an unusable setting stops `manage.py check` and every command with a sentence."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, Tags, Warning
from django.core.exceptions import ImproperlyConfigured
from django.db.models import Model

from scheduling import conf


def check_settings(**_kwargs: Any) -> list[CheckMessage]:
    """E001: a setting is unreadable or out of bounds."""
    return [Error(text, id="scheduling.E001") for text in conf.problems()]


def check_logging(**_kwargs: Any) -> list[CheckMessage]:
    """E002: LOG_FORMAT or LOG_LEVEL is unknown."""
    from scheduling import logs

    try:
        logs.validate(getattr(settings, "LOG_FORMAT", "text"), getattr(settings, "LOG_LEVEL", "INFO"))
    except ValueError as error:
        return [Error(str(error), id="scheduling.E002")]
    return []


def check_secret_key(**_kwargs: Any) -> list[CheckMessage]:
    """E003: no SECRET_KEY."""
    try:
        if settings.SECRET_KEY:
            return []
    except ImproperlyConfigured:  # Django's own refusal has no way out in it
        pass
    return [
        Error(
            "SECRET_KEY is empty. Set it in the environment, or run `manage.py up`, which makes one.",
            id="scheduling.E003",
        )
    ]


def check_databases(databases: list[str] | None = None, **_kwargs: Any) -> list[CheckMessage]:
    """W001: SQLite without immediate transactions can answer "database is locked"."""
    found: list[CheckMessage] = []
    for alias, config in settings.DATABASES.items():
        if str(config.get("ENGINE", "")).endswith("sqlite3"):
            options = config.get("OPTIONS", {})
            if (
                options.get("transaction_mode") != "IMMEDIATE"
                or "wal" not in str(options.get("init_command", "")).lower()
            ):
                found.append(
                    Warning(
                        f"DATABASES[{alias!r}] is SQLite without WAL and immediate transactions; "
                        "side by side, producers and consumers may meet 'database is locked'.",
                        hint='OPTIONS: {"transaction_mode": "IMMEDIATE", "timeout": 20, '
                        '"init_command": "PRAGMA journal_mode=WAL;"}',
                        id="scheduling.W001",
                    )
                )
    return found


def check_handlers(**_kwargs: Any) -> list[CheckMessage]:
    """E004: a command of CRON_COMMANDS does not exist."""
    from django.core.management import get_commands

    if conf.problems():
        return []
    unknown = [name for name in conf.get_conf().commands if name not in get_commands()]
    return [
        Error(f"CRON_COMMANDS names {name!r}, but there is no such management command.", id="scheduling.E004")
        for name in unknown
    ]


def check_params(databases: list[str] | None = None, **_kwargs: Any) -> list[CheckMessage]:
    """W002: an active schedule's params do not fit the code it names (with `check --database` and `migrate`)."""
    from django.db import connections

    from scheduling import contract
    from scheduling.models import Scheduler
    from scheduling.models.scheduler import TARGETS

    found: list[CheckMessage] = []
    for alias in databases or []:
        if not _has_columns(connections[alias], Scheduler, *TARGETS):
            continue
        rows = Scheduler._default_manager.using(alias).filter(status=True)
        for row in rows.select_related("worker", "report", "reminder").iterator(chunk_size=1000):
            text = contract.problem(row)
            if text:
                found.append(
                    Warning(f"Schedule {row.pk} ({row}) would fail before its handler: {text}", id="scheduling.W002")
                )
    return found


def _has_columns(connection: Any, model: type[Model], *relations: str) -> bool:
    """Whether a database has all that a model and its relations are read from.

    `migrate` itself runs these checks first: before a first installation there is no table, and before an upgrade
    the tables are those of the former version.
    """
    models: list[Any] = [model, *(model._meta.get_field(name).related_model for name in relations)]
    tables = set(connection.introspection.table_names())
    with connection.cursor() as cursor:
        for each in models:
            if each._meta.db_table not in tables:
                return False
            there = {
                column.name for column in connection.introspection.get_table_description(cursor, each._meta.db_table)
            }
            if not {field.column for field in each._meta.concrete_fields} <= there:
                return False
    return True


def register_all(register: Callable[..., Any]) -> None:
    """Register every check of the app."""
    register(check_settings, "scheduling")
    register(check_logging, "scheduling")
    register(check_secret_key, "scheduling")
    register(check_databases, "scheduling")
    register(check_handlers, "scheduling")
    register(check_params, Tags.database)
