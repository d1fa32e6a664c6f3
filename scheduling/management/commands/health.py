"""`manage.py health`: a container's probe. One line, exit code 0 when its process is at work."""

from __future__ import annotations

import logging
import sys
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone as clock

from scheduling.doctor.pulse import of_process, of_web

UNHEALTHY = 1


class Command(BaseCommand):
    help = "Says whether the producer, consumer or web server of this host or container is at work."
    requires_system_checks: list[str] = []  # a probe must be cheap

    def add_arguments(self, parser: CommandParser) -> None:
        """--kind, --seconds, --port."""
        parser.add_argument("--kind", choices=("producer", "consumer", "web"), required=True)
        parser.add_argument(
            "--seconds", type=int, default=30, help="how old the last heartbeat may be (default: %(default)s)"
        )
        parser.add_argument(
            "--port", type=int, default=8000, help="where the web server listens (default: %(default)s)"
        )

    def handle(self, *_args: Any, **options: Any) -> None:
        """Ask, print, exit."""
        if options["seconds"] < 1:
            raise CommandError("--seconds must be at least 1.")
        logging.disable(logging.CRITICAL)  # its one line is the answer
        try:
            if options["kind"] == "web":
                pulse = of_web(options["port"])
            else:
                pulse = of_process(options["kind"], clock.now(), options["seconds"])
        finally:
            logging.disable(logging.NOTSET)
        self.stdout.write(f"{'healthy' if pulse.well else 'unhealthy'}: {pulse.text}")
        if not pulse.well:
            sys.exit(UNHEALTHY)
