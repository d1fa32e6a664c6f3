"""Django system checks. The errors E001 to E006 stop every command. The warnings W001 to W005 stop no command.

The error E007 makes `manage.py check` fail. It does not stop producers and consumers, because it is about one handler.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, Tags, Warning, register
from django.core.exceptions import ImproperlyConfigured
from django.core.management import get_commands
from django.db import connections
from django.db.models import Model

from scheduling import conf
from scheduling.core.setting_values import ConfError
from scheduling.core.text import visible_text


@register("scheduling")
def check_settings(**_kwargs: Any) -> list[CheckMessage]:
    """E001: a setting is unreadable or out of bounds."""
    return [Error(text, id="scheduling.E001") for text in conf.problems()]


@register("scheduling")
def check_broker_url(**_kwargs: Any) -> list[CheckMessage]:
    """E006: CRON_BROKER_URL, or one address in its list, cannot be read."""
    if conf.problems():
        return []
    from scheduling.broker import address_count

    try:
        address_count(conf.get_conf().broker_url)
    except ConfError as error:
        return [Error(str(error), id="scheduling.E006")]
    return []


@register("scheduling")
def check_logging(**_kwargs: Any) -> list[CheckMessage]:
    """E002: CRON_LOG_FORMAT or CRON_LOG_LEVEL is unknown."""
    try:
        conf.log_options()
    except ValueError as error:
        return [Error(str(error), id="scheduling.E002")]
    return []


@register("scheduling")
def check_secret_key(**_kwargs: Any) -> list[CheckMessage]:
    """E003: SECRET_KEY is empty."""
    with suppress(ImproperlyConfigured):  # Django's own message for an empty key does not say what to do
        if settings.SECRET_KEY:
            return []
    text = "SECRET_KEY is empty. Set it in the environment, or run `manage.py up`, which makes one."
    return [Error(text, id="scheduling.E003")]


@register("scheduling")
def check_databases(**_kwargs: Any) -> list[CheckMessage]:
    """W001: OPTIONS of a SQLite database exclude WAL or immediate transactions. Otherwise this app sets both."""
    return [
        Warning(
            f"The OPTIONS of DATABASES[{alias!r}] keep SQLite from WAL and immediate transactions; "
            "side by side, producers and consumers may meet 'database is locked'.",
            hint="Remove transaction_mode and journal_mode from OPTIONS: this app sets both. "
            'Or name them: {"transaction_mode": "IMMEDIATE", "init_command": "PRAGMA journal_mode=WAL;"}',
            id="scheduling.W001",
        )
        for alias, config in settings.DATABASES.items()
        if str(config.get("ENGINE", "")).endswith("sqlite3") and _may_lock(config.get("OPTIONS", {}))
    ]


def _may_lock(options: dict[str, Any]) -> bool:
    command = str(options.get("init_command", "")).lower()
    other_journal = "journal_mode" in command and "wal" not in command
    return other_journal or str(options.get("transaction_mode", "IMMEDIATE")).upper() != "IMMEDIATE"


@register("scheduling")
def check_handlers(**_kwargs: Any) -> list[CheckMessage]:
    """E004: a command of CRON_COMMANDS does not exist."""
    if conf.problems():
        return []
    return [
        Error(f"CRON_COMMANDS names {name!r}, but there is no such management command.", id="scheduling.E004")
        for name in conf.get_conf().commands
        if name not in get_commands()
    ]


@register("scheduling")
def check_permissions(**_kwargs: Any) -> list[CheckMessage]:
    """E005: the permission of a handler has a wrong shape. W003: no installed model has this permission."""
    from scheduling.handlers import permission

    return [
        Error(text, id="scheduling.E005") if wrong_shape else Warning(text, hint=LONELY, id="scheduling.W003")
        for text, wrong_shape in permission.problems()
    ]


@register("scheduling")
def check_pings(**_kwargs: Any) -> list[CheckMessage]:
    """W005: a setting asks for pings that cannot be sent from here. Runs go on without them."""
    if conf.problems():
        return []
    from scheduling.pings import address, sentry

    found = []
    if conf.get_conf().heartbeat_url and (said := address.problem(conf.get_conf().heartbeat_url)):
        found.append(f"CRON_HEARTBEAT_URL: {said}")
    if conf.get_conf().sentry_monitors and (said := sentry.problem()):
        found.append(said)
    return [Warning(text, id="scheduling.W005") for text in found]


@register("scheduling_handlers")
def check_backoffs(**_kwargs: Any) -> list[CheckMessage]:
    """E007: the backoff of a handler cannot be used. Its own tag keeps this error from stopping the other handlers."""
    from scheduling.handlers import handlers

    return [
        Error(
            f"{handler.type.capitalize()} {handler.name!r}: {handler.retry.problem}",
            hint=FALLBACK,
            id="scheduling.E007",
        )
        for handler in handlers()
        if handler.retry is not None and handler.retry.problem
    ]


FALLBACK = "Until it is corrected, the delays of this handler grow exponentially."

LONELY = (
    "Until it exists, only superusers can change and run the handler. Name a permission of a model, or add it there."
)


@register(Tags.database)
def check_schedules(databases: Sequence[str] | None = None, **_kwargs: Any) -> list[CheckMessage]:
    """W002: the handler of an active schedule refuses the schedule's params. W004: no code registers this handler.

    Only `check --database` and `migrate` run this check.
    """
    from scheduling.core.targets import TARGETS
    from scheduling.handlers import validation
    from scheduling.handlers.targets import handler_of
    from scheduling.models import Scheduler
    from scheduling.models.parts import rows_in_parts

    found: list[CheckMessage] = []
    for alias in databases or []:
        if not _has_columns(connections[alias], Scheduler, *TARGETS):
            continue
        rows = Scheduler._default_manager.using(alias).filter(status=True)
        for row in rows_in_parts(rows.select_related(*TARGETS)):
            named = f"Schedule {row.pk} ({visible_text(str(row), 100)})"
            if handler_of(row) is None:
                text = f"{named} has no handler: no installed app registers {visible_text(str(row.target), 100)}."
                found.append(Warning(text, hint=NO_HANDLER, id="scheduling.W004"))
            elif error := validation.run_params_error(row.target_type, row.target, row.params, stored=True):
                text = f"{named} would fail before its handler: {error}"
                found.append(Warning(text, id="scheduling.W002"))
            elif names := validation.left_out(row):
                text = f"{named} has parameters that its handler does not know: {visible_text(', '.join(names), 500)}"
                found.append(Warning(text, hint=LEFT_OUT, id="scheduling.W002"))
    return found


LEFT_OUT = "Its runs leave them out. Remove them from the schedule."

NO_HANDLER = "Its runs wait for code that has it, and fail after a while. Install the app, or pause the schedule."


def _has_columns(connection: Any, model: type[Model], *relations: str) -> bool:
    """Whether a database has the tables and columns of a model and of the models to which `relations` point.

    `migrate` runs the checks before it changes anything. At that time, a first installation has no tables. During an
    upgrade, the tables still have the columns of the previous version.
    """
    related: list[Any] = [model._meta.get_field(name).related_model for name in relations]
    if any(isinstance(target, str) for target in related):
        return False  # the model's app is not installed (E011)
    tables = set(connection.introspection.table_names())
    with connection.cursor() as cursor:
        for meta in (model._meta, *(target._meta for target in related)):
            if meta.db_table not in tables:
                return False
            there = {column.name for column in connection.introspection.get_table_description(cursor, meta.db_table)}
            if not {field.column for field in meta.concrete_fields} <= there:
                return False
    return True
