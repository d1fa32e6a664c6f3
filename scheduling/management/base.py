"""The base class of the commands. It configures logging, reads the settings and reports an error as one sentence."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from django.core.checks import Tags
from django.core.management.base import BaseCommand, CommandError

from scheduling.broker import Broker, BrokerError, BrokerRefused, TopologyMismatch, get_broker
from scheduling.conf import Conf, get_conf
from scheduling.core.queues import MAIN, work_queues
from scheduling.core.setting_values import ConfError
from scheduling.handlers.retry_delays import known_delays
from scheduling.management.logging_setup import configure_logging
from scheduling.management.tables import must_have_tables

OK = 0
FAILED = 1
"""Exit code of a command that refused to start or failed. The last line of its output says why."""


class SchedulingCommand(BaseCommand):
    """Configures logging, reads the settings, and then calls `work`."""

    # These processes answer no requests. All checks together would import the URLs and pages of the whole project.
    requires_system_checks = (Tags.models, "scheduling")

    needs_tables = True
    """Whether the command ends with a sentence if `migrate` has never run."""

    def handle(self, *args: Any, **options: Any) -> None:
        """Configure logging and read the settings, then call `work`.

        Raises:
            CommandError: when the settings are invalid, or `migrate` has never run.
        """
        try:
            if "CRON_CHILD" not in os.environ:  # a consumer's child has configured its own logging
                configure_logging()
            conf = get_conf()
        except (ConfError, ValueError) as error:
            raise CommandError(str(error)) from None
        if self.needs_tables:
            must_have_tables(conf)
        self.work(conf, **options)

    def work(self, conf: Conf, **options: Any) -> None:
        """Do the command's work; subclasses implement this."""
        raise NotImplementedError


def open_broker(conf: Conf, queues: Sequence[str] = ()) -> Broker:
    """Connect the transport and declare its queues. If the broker is unreachable, the transport keeps trying.

    Args:
        queues: the queues that this process will consume; empty if the process consumes none.

    Raises:
        CommandError: the broker's URL or login is wrong, or a queue already exists with other arguments.
    """
    try:
        broker = get_broker(conf.broker_url)
    except ConfError as error:
        raise CommandError(str(error)) from None
    try:
        known = {} if broker.embedded else {queue: known_delays(queue) for queue in queues}
        broker.declare(known.get(MAIN, ()), *work_queues(queues))
        for queue, delays in known.items():
            broker.declare(delays, queue)
    except (BrokerRefused, TopologyMismatch) as error:
        broker.close()
        raise CommandError(str(error)) from None
    except BrokerError:
        pass  # the transport has logged the error and keeps trying
    return broker
