"""`manage.py run_worker`: runs a consumer. Several consumers can run at the same time."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandError, CommandParser
from django.db import DEFAULT_DB_ALIAS, connections

from scheduling.conf import Conf
from scheduling.consumer.supervisor import Supervisor
from scheduling.management.base import SchedulingCommand, open_broker
from scheduling.management.restart import add_restart_on_change, leave_for
from scheduling.processes.answer_limit import AnswerLimit
from scheduling.processes.idle_transactions import limit_idle_transactions
from scheduling.processes.shutdown import ShutdownRequest

MAX_CONCURRENCY = 256


class Command(SchedulingCommand):
    help = "Runs published executions in child processes, until SIGTERM or Ctrl-C; then drains."

    def add_arguments(self, parser: CommandParser) -> None:
        """--concurrency, --standalone, --max-runs, --restart-on-change."""
        parser.add_argument("--concurrency", type=int, default=1, help="runs at once (default 1)")
        parser.add_argument("--standalone", action="store_true", help="serve the schedules marked standalone only")
        parser.add_argument("--max-runs", type=int, default=None, help="end after so many runs")
        add_restart_on_change(parser)

    def work(self, conf: Conf, **options: Any) -> None:
        """Run one consumer."""
        concurrency = options["concurrency"]
        if not 1 <= concurrency <= MAX_CONCURRENCY:
            raise CommandError(f"--concurrency must be from 1 to {MAX_CONCURRENCY}, not {concurrency}.")
        if options["max_runs"] is not None and options["max_runs"] < 1:
            raise CommandError("--max-runs must be at least 1.")
        queue = "standalone" if options["standalone"] else "main"
        limit_idle_transactions(conf.lease_seconds)
        with ShutdownRequest() as stop, AnswerLimit(connections[DEFAULT_DB_ALIAS], conf.lease_seconds):
            broker = open_broker(conf, queue)
            follow, most = options["restart_on_change"], options["max_runs"]
            supervisor = Supervisor(
                broker, conf, stop, concurrency=concurrency, queue=queue, max_runs=most, follow_code=follow
            )
            supervisor.run()
        leave_for(supervisor.renewal)
