"""`manage.py health` is a container's health probe. It prints one line. The exit code 0 means healthy."""

from __future__ import annotations

import json
import sys
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone as clock

from scheduling.management.cron.closed_pipe import may_be_cut
from scheduling.management.quiet_log import quiet_log
from scheduling.monitoring.doctor.liveness import of_process, of_web
from scheduling.operations.shapes import VERSION

UNHEALTHY = 1


class Command(BaseCommand):
    help = "Says whether the producer, consumer or web server of this host or container is at work."
    requires_system_checks: list[str] = []  # a probe must be cheap

    def add_arguments(self, parser: CommandParser) -> None:
        """--kind, --seconds, --port, --json."""
        parser.add_argument("--kind", choices=("producer", "consumer", "web"), required=True)
        age = "how old the last heartbeat may be (default: 60, or the lease if it is longer)"
        parser.add_argument("--seconds", type=int, help=age)
        where = "where the web server listens (default: %(default)s)"
        parser.add_argument("--port", type=int, default=8000, help=where)
        parser.add_argument("--json", action="store_true", help="write one JSON document")

    @may_be_cut
    def handle(self, *_args: Any, **options: Any) -> None:
        """Print one line. Exit with UNHEALTHY if the process is not healthy."""
        if options["seconds"] is not None and options["seconds"] < 1:
            raise CommandError("--seconds must be at least 1.")
        with quiet_log():  # the printed line is the only output
            if options["kind"] == "web":
                pulse = of_web(options["port"])
            else:
                pulse = of_process(options["kind"], clock.now(), options["seconds"])
        if options["json"]:
            document = {"version": VERSION, "kind": "health", "healthy": pulse.well, "text": pulse.text}
            self.stdout.write(json.dumps(document, ensure_ascii=False))
        elif options["verbosity"] > 0:
            self.stdout.write(f"{'healthy' if pulse.well else 'unhealthy'}: {pulse.text}")
        if not pulse.well:
            sys.exit(UNHEALTHY)
