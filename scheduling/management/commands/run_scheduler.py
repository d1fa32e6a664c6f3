"""`manage.py run_scheduler`: runs a producer. Several producers can run at the same time."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser
from django.db import DEFAULT_DB_ALIAS, connections

from scheduling.conf import Conf
from scheduling.management.base import SchedulingCommand, open_broker
from scheduling.management.restart import add_restart_on_change, leave_for
from scheduling.processes.answer_limit import AnswerLimit
from scheduling.processes.idle_transactions import limit_idle_transactions
from scheduling.processes.shutdown import ShutdownRequest
from scheduling.producer.loop import Producer


class Command(SchedulingCommand):
    help = "Claims each due occurrence exactly once and publishes it, until SIGTERM or Ctrl-C."

    def add_arguments(self, parser: CommandParser) -> None:
        """--restart-on-change."""
        add_restart_on_change(parser)

    def work(self, conf: Conf, **options: Any) -> None:
        """Run one producer."""
        limit_idle_transactions(conf.lease_seconds)
        with ShutdownRequest() as stop, AnswerLimit(connections[DEFAULT_DB_ALIAS], conf.lease_seconds):
            broker = open_broker(conf)
            producer = Producer(broker, stop, follow_code=options["restart_on_change"])
            producer.run()
        leave_for(producer.renewal)
