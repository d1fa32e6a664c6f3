"""`manage.py cleanup_executions` removes old executions.

`migrate` creates a schedule that runs this command daily at 3 AM.
"""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandError, CommandParser
from django.utils import timezone as clock

from scheduling.conf import Conf
from scheduling.execution.retention import prune
from scheduling.management.base import SchedulingCommand


class Command(SchedulingCommand):
    help = "Removes executions that ended long ago. What waits, runs or stands in the failed inbox is kept."

    def add_arguments(self, parser: CommandParser) -> None:
        """--days, --dry-run, --max-seconds."""
        parser.add_argument("--days", type=int, help="keep so many days (default: CRON_RETENTION_DAYS, 30)")
        parser.add_argument("--dry-run", action="store_true", help="count, and remove nothing")
        parser.add_argument("--max-seconds", type=float, help="stop after so long; the next pass goes on")

    def work(self, conf: Conf, **options: Any) -> None:
        """Remove old executions once and print a summary."""
        days = options["days"] if options["days"] is not None else conf.retention_days
        if options["max_seconds"] is not None and options["max_seconds"] <= 0:
            raise CommandError("--max-seconds must be more than 0.")
        try:
            done = prune(clock.now(), days, dry_run=options["dry_run"], max_seconds=options["max_seconds"])
        except ValueError as error:
            raise CommandError(str(error)) from None
        verb = "Would delete" if options["dry_run"] else "Deleted"
        self.stdout.write(
            f"{verb} {done.executions} execution records older than {days} days "
            f"({done.attempts} attempts, {done.outputs} pieces of output, {done.processes} process records, "
            f"{done.replays} replays, {done.refused_rows} records of refused rows)."
        )
        if not done.complete:
            self.stdout.write("The time was over before the end; the next pass goes on.")
