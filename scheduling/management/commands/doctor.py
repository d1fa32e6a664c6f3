"""`manage.py doctor`: tells what is wrong with this installation and how to fix it."""

from __future__ import annotations

import sys
from typing import Any

from django.core.management.base import BaseCommand, CommandParser, no_translations
from django.utils import timezone as clock

from scheduling.management.cron.closed_pipe import may_be_cut
from scheduling.management.quiet_log import quiet_log
from scheduling.monitoring.doctor.examine import AREAS, examine
from scheduling.monitoring.doctor.report import as_json, plain
from scheduling.monitoring.findings.finding import Level, worst

FOUND = 1
"""The exit code if a finding is a failure or (with --strict) a warning."""


class Command(BaseCommand):
    help = (
        "Looks at settings, database, broker, schedules, processes and waiting runs, and says what to do. "
        "Exit code 1 when something fails. Like a start, it declares the broker's queues if they are missing."
    )
    requires_system_checks: list[str] = []  # the doctor reports failed system checks as findings

    def add_arguments(self, parser: CommandParser) -> None:
        """Add the options `--format`, `--json`, `--strict` and `--only`."""
        parser.add_argument("--format", choices=("plain", "json"), default="plain", help="for people or for scripts")
        parser.add_argument("--json", dest="format", action="store_const", const="json", help="as --format json")
        parser.add_argument("--strict", action="store_true", help="exit with 1 for warnings too")
        areas = f"look at these only ({', '.join(AREAS)}); before a first start: settings database broker"
        parser.add_argument("--only", nargs="+", choices=AREAS, default=AREAS, metavar="AREA", help=areas)

    @may_be_cut
    @no_translations  # scripts read the findings, so the language must not change
    def handle(self, *_args: Any, **options: Any) -> None:
        """Print the report; exit with FOUND if it contains a failure (or, with --strict, a warning)."""
        with quiet_log():  # the transport would log the same errors that the findings report
            report = examine(clock.now(), options["only"])
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
