"""`manage.py import_crontab FILE`: the lines of a crontab become schedules of `run_command`. See docs/moving.md."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandParser
from django.utils import timezone as clock
from django.utils.translation import gettext as _

from scheduling.core.crontab_lines import MAX_BYTES, CrontabLine, read_crontab
from scheduling.core.text import visible_text
from scheduling.core.zones import ZoneError, zone
from scheduling.management.cron.console import Console
from scheduling.management.cron.guard import guarded
from scheduling.management.cron.schedule_file import read_bytes
from scheduling.management.moving.crontab_items import Surroundings, crontab_items, variables_told
from scheduling.management.moving.machine_zone import machine_zone
from scheduling.management.moving.options import add_common
from scheduling.management.moving.report import tell
from scheduling.operations.refused import Code, Refused
from scheduling.operations.schedule_import import carry_out, examine


class Command(BaseCommand):
    help = (
        "Makes schedules of the management commands in a crontab, and lists each line that cannot become one. What an "
        "import has made before stays as it is."
    )
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        """FILE, what kind of crontab it is, and what both imports have."""
        parser.add_argument("file", metavar="FILE", help="such as the output of crontab -l; -: standard input")
        parser.add_argument("--system", action="store_true", help="each line names a user, as in /etc/crontab")
        zones = "the zone in which cron reads the times (default: that of this machine)"
        parser.add_argument("--timezone", metavar="ZONE", help=zones)
        folder = "a further folder of this project's manage.py, as the crontab writes it; may be repeated"
        parser.add_argument("--project", action="append", default=[], metavar="FOLDER", help=folder)
        add_common(parser)

    def handle(self, *_args: Any, **options: Any) -> None:
        """Import the file. Raises SystemExit with the exit code, unless that is 0."""
        guarded(self, options, lambda console: _work(console, options))


def _work(console: Console, options: Mapping[str, Any]) -> int:
    actor = console.actor(changes=not options["dry_run"])
    around = Surroundings(
        _zone(options["timezone"]), _folders(options["project"]), os.environ.get("DJANGO_SETTINGS_MODULE", ""),
        options["paused"],
    )  # fmt: skip
    lines = list(read_crontab(_text(options["file"]), system=options["system"]))
    items = crontab_items(lines, around)
    examine(actor, items, clock.now())
    if not options["dry_run"]:
        carry_out(actor, items, "a crontab")
    said = _("The times are read in the zone %(zone)s.")
    if any(isinstance(line, CrontabLine) and line.zone for line in lines):
        said = _("The times of lines without a CRON_TZ before them are read in the zone %(zone)s.")
    hints = [*variables_told(lines), said % {"zone": around.timezone}]
    return tell(console, items, hints, done=not options["dry_run"])


def _zone(asked: str | None) -> str:
    name = asked or machine_zone()
    if not name:
        said = _(
            "This machine does not tell its time zone. Give the zone in which cron read the times: --timezone ZONE."
        )
        raise Refused.value("timezone", said)
    try:
        return zone(name).key
    except ZoneError as error:
        raise Refused.value("timezone", str(error)) from None


def _folders(further: list[str]) -> set[str]:
    """The folders of this project's manage.py: the one that runs now, the present one, and the further ones."""
    own = Path(sys.argv[0]).resolve().parent
    return {str(own), str(Path.cwd()), *(folder.rstrip("/") or "/" for folder in further)}


def _text(file: str) -> str:
    try:
        data = read_bytes(file, MAX_BYTES)
    except (OSError, ValueError) as error:
        facts = {"file": visible_text(file, 200), "error": getattr(error, "strerror", None) or error}
        raise Refused(Code.INVALID, _("The file %(file)s cannot be read: %(error)s.") % facts) from None
    if len(data) > MAX_BYTES:
        said = _("The file is longer than %(bytes)s bytes, which is no crontab.") % {"bytes": MAX_BYTES}
        raise Refused(Code.INVALID, said)
    return data.decode("utf-8", "replace").replace("\x00", "\ufffd")
