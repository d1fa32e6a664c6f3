"""`manage.py run_scheduler`: a producer. Any number may run side by side."""

from __future__ import annotations

from typing import Any

from scheduling.conf import Conf
from scheduling.management.base import SchedulingCommand, open_broker
from scheduling.producer.loop import Producer
from scheduling.stop import Stop


class Command(SchedulingCommand):
    help = "Claims each due occurrence exactly once and publishes it, until SIGTERM or Ctrl-C."

    def work(self, conf: Conf, **options: Any) -> None:
        """Run one producer."""
        with Stop() as stop:
            broker = open_broker(conf)
            Producer(broker, stop).run()
