"""`manage.py run_scheduler`: a producer. Any number may run side by side."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandError

from scheduling.broker import get_broker
from scheduling.conf import Conf, ConfError
from scheduling.management.base import SchedulingCommand
from scheduling.producer.loop import Producer
from scheduling.stop import Stop


class Command(SchedulingCommand):
    help = "Claims each due occurrence exactly once and publishes it, until SIGTERM or Ctrl-C."

    def work(self, conf: Conf, **options: Any) -> None:
        """Run one producer."""
        with Stop() as stop:
            try:
                broker = get_broker(conf.broker_url)
            except ConfError as error:
                raise CommandError(str(error)) from None
            Producer(broker, stop).run()
