"""`manage.py run_scheduler`: runs a producer. Several producers can run at the same time."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser
from django.db import DEFAULT_DB_ALIAS, connections

from scheduling.alerts.watcher import Watcher
from scheduling.conf import Conf
from scheduling.management.base import SchedulingCommand, open_broker
from scheduling.management.metrics_port import add_metrics_port, serving_metrics
from scheduling.management.restart import add_restart_on_change, follows_code, leave_for
from scheduling.pings.sender import sending
from scheduling.processes.answer_limit import AnswerLimit
from scheduling.processes.idle_transactions import limit_idle_transactions
from scheduling.processes.shutdown import ShutdownRequest
from scheduling.producer.loop import Producer


class Command(SchedulingCommand):
    help = "Claims each due occurrence exactly once and publishes it, until SIGTERM or Ctrl-C."

    def add_arguments(self, parser: CommandParser) -> None:
        """--restart-on-change, --reload, --metrics-port, --metrics-host."""
        add_restart_on_change(parser)
        add_metrics_port(parser)

    def work(self, conf: Conf, **options: Any) -> None:
        """Run one producer."""
        limit_idle_transactions(conf.lease_seconds)
        with ShutdownRequest() as stop, AnswerLimit(connections[DEFAULT_DB_ALIAS], conf.lease_seconds):
            broker = open_broker(conf)
            producer = Producer(broker, stop, follow_code=follows_code(options))
            with serving_metrics(options), sending(), Watcher():
                producer.run()
        leave_for(producer.renewal, options)
