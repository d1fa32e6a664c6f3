"""`manage.py doctor`: what is wrong with this installation, and what to do about it."""

from __future__ import annotations

import logging
import sys
from typing import Any

from django.core.management.base import BaseCommand, CommandParser
from django.utils import timezone as clock

from scheduling.doctor.examine import AREAS, examine
from scheduling.doctor.finding import Level, worst
from scheduling.doctor.report import as_json, plain

FOUND = 1
"""Exit code when something fails or, with --strict, is worth a warning."""


class Command(BaseCommand):
    help = (
        "Looks at settings, database, broker, schedules, processes and waiting runs, and says what to do. "
        "Exit code 1 when something fails. Like a start, it declares the broker's queues if they are missing."
    )
    requires_system_checks: list[str] = []  # they are findings here

    def add_arguments(self, parser: CommandParser) -> None:
        """--format, --strict, --only."""
        parser.add_argument("--format", choices=("plain", "json"), default="plain", help="for people or for scripts")
        parser.add_argument("--strict", action="store_true", help="exit with 1 for warnings too")
        parser.add_argument(
            "--only",
            nargs="+",
            choices=AREAS,
            default=AREAS,
            metavar="AREA",
            help=f"look at these only ({', '.join(AREAS)}); before a first start: settings database broker",
        )

    def handle(self, *_args: Any, **options: Any) -> None:
        """Examine, print, exit."""
        logging.disable(logging.CRITICAL)  # the transport's own lines say what the findings say
        try:
            report = examine(clock.now(), options["only"])
        finally:
            logging.disable(logging.NOTSET)
        if options["format"] == "json":
            self.stdout.write(as_json(report))
        else:
            for line in plain(report, self._paint):
                self.stdout.write(line)
        level = worst(finding for _, finding in report)
        if level is Level.FAIL or (options["strict"] and level is Level.WARN):
            sys.exit(FOUND)

    def _paint(self, level: Level, shown: str) -> str:
        style = {Level.OK: self.style.SUCCESS, Level.WARN: self.style.WARNING, Level.FAIL: self.style.ERROR}[level]
        return str(style(shown))
