"""What the commands share: logging, settings, and errors as one sentence."""

from __future__ import annotations

import os
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from scheduling import logs
from scheduling.broker import Broker, BrokerError, BrokerRefused, TopologyMismatch, get_broker
from scheduling.conf import Conf, ConfError, get_conf
from scheduling.delays import known_delays

OK = 0
FAILED = 1
"""The command refused to start or could not do what was asked; the last line says why."""


class SchedulingCommand(BaseCommand):
    """Configures logging and reads the settings before `work`."""

    def handle(self, *args: Any, **options: Any) -> None:
        """Refuse unusable settings with a sentence, then work."""
        try:
            if "CRON_CHILD" not in os.environ:  # inside a run its consumer reads the lines, with their levels
                logs.configure(getattr(settings, "LOG_FORMAT", "text"), getattr(settings, "LOG_LEVEL", "INFO"))
            conf = get_conf()
        except (ConfError, ValueError) as error:
            raise CommandError(str(error)) from None
        self.work(conf, **options)

    def work(self, conf: Conf, **options: Any) -> None:
        """What the command does."""
        raise NotImplementedError


def open_broker(conf: Conf, queue: str = "") -> Broker:
    """The transport with its queues declared. A broker that is away is waited for in the background.

    Args:
        queue: the queue that will be consumed, if any.

    Raises:
        CommandError: for what only a person can mend: the URL, the login, queues of another shape.
    """
    try:
        broker = get_broker(conf.broker_url)
    except ConfError as error:
        raise CommandError(str(error)) from None
    try:
        broker.declare(known_delays() if queue and not broker.embedded else (), queue)
    except (BrokerRefused, TopologyMismatch) as error:
        broker.close()
        raise CommandError(str(error)) from None
    except BrokerError:
        pass  # the transport has said so, and goes on trying
    return broker
