"""`manage.py import_celery_beat`: the tasks of django-celery-beat become schedules. See docs/moving.md."""

from __future__ import annotations

from argparse import ArgumentTypeError
from collections.abc import Mapping
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandParser
from django.db import DEFAULT_DB_ALIAS, connections
from django.utils import timezone as clock
from django.utils.translation import gettext as _

from scheduling.conf import get_conf
from scheduling.handlers.targets import handler_named
from scheduling.management.cron.console import Console
from scheduling.management.cron.guard import guarded
from scheduling.management.moving.beat_items import TARGET_TYPES, Choices, beat_items
from scheduling.management.moving.beat_tables import BeatTables
from scheduling.management.moving.options import add_common
from scheduling.management.moving.report import tell
from scheduling.operations.refused import Code, Refused
from scheduling.operations.schedule_import import carry_out, examine


class Command(BaseCommand):
    help = (
        "Makes schedules of the tasks of django-celery-beat, whose tables it reads, and lists each task that cannot "
        "become one. What an import has made before stays as it is."
    )
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        """Which handlers run the tasks, how exact the times must be, and what both imports have."""
        handler = "the handler of a task; default: the one with the same name. report:NAME names a report"
        parser.add_argument("--map", action="append", default=[], type=_mapping, metavar="TASK=HANDLER", help=handler)
        exact = "list a task whose instants in the next two years differ from beat's when the clocks change"
        parser.add_argument("--exact", action="store_true", help=exact)
        parser.add_argument(
            "--database", metavar="ALIAS", default=DEFAULT_DB_ALIAS, help="where the tables of beat are"
        )
        add_common(parser)

    def handle(self, *_args: Any, **options: Any) -> None:
        """Import the tasks. Raises SystemExit with the exit code, unless that is 0."""
        guarded(self, options, lambda console: _work(console, options))


def _work(console: Console, options: Mapping[str, Any]) -> int:
    actor = console.actor(changes=not options["dry_run"])
    if not getattr(settings, "DJANGO_CELERY_BEAT_TZ_AWARE", True):
        said = _(
            "DJANGO_CELERY_BEAT_TZ_AWARE is false, so beat does not heed the zones of its crontabs, and their times "
            "cannot be told. Nothing was imported."
        )
        raise Refused(Code.INVALID, said)
    if options["database"] not in connections.databases:
        said = _("The settings have no database “%(alias)s”.") % {"alias": options["database"]}
        raise Refused.value("database", said)
    choices = Choices(_handlers(options["map"]), options["exact"], options["paused"], get_conf().seconds)
    now = clock.now()
    items = beat_items(BeatTables(options["database"]), choices, now)
    examine(actor, items, now)
    if not options["dry_run"]:
        carry_out(actor, items, "Celery beat")
    return tell(console, items, [], done=not options["dry_run"])


def _mapping(text: str) -> tuple[str, str]:
    task, equals, handler = text.partition("=")
    if not (task and equals and handler):
        raise ArgumentTypeError(f"{text[:80]!r} is not TASK=HANDLER")
    return task, handler


def _handlers(pairs: list[tuple[str, str]]) -> dict[str, tuple[str, str]]:
    """The type and the name of the handler of each task.

    Raises:
        Refused: INVALID; there is no such handler.
    """
    found = {}
    for task, text in pairs:
        prefix, colon, name = text.partition(":")
        types = (prefix,) if colon and prefix in TARGET_TYPES else TARGET_TYPES
        handler = name if len(types) == 1 else text
        type_ = next((one for one in types if handler_named(one, handler) is not None), None)
        if type_ is None:
            raise Refused.value("map", _("There is no handler “%(name)s”.") % {"name": text[:100]})
        found[task] = (type_, handler)
    return found
