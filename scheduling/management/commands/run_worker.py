"""`manage.py run_worker`: runs a consumer. Several consumers can run at the same time."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandError, CommandParser
from django.db import DEFAULT_DB_ALIAS, connections

from scheduling.alerts.watcher import Watcher
from scheduling.broker.database import DatabaseBroker
from scheduling.conf import Conf
from scheduling.consumer.supervisor import Supervisor
from scheduling.core.queues import MAIN, STANDALONE, queue_problem
from scheduling.handlers.registry import handlers
from scheduling.management.base import SchedulingCommand, open_broker
from scheduling.management.chosen_handlers import chosen_handlers
from scheduling.management.metrics_port import add_metrics_port, serving_metrics
from scheduling.management.prefetch import prefetch_of, with_batches
from scheduling.management.restart import add_restart_on_change, follows_code, leave_for
from scheduling.pings.sender import sending
from scheduling.processes.answer_limit import AnswerLimit
from scheduling.processes.idle_transactions import limit_idle_transactions
from scheduling.processes.shutdown import ShutdownRequest

MAX_CONCURRENCY = 256
MAX_QUEUES = 100


def _queues(text: str) -> list[str]:
    """The queues that the option --queue names, without repeats.

    Raises:
        CommandError: there can be no such queue, or there are too many.
    """
    names = list(dict.fromkeys(name.strip() for name in text.split(",")))
    if len(names) > MAX_QUEUES:
        raise CommandError(f"--queue names {len(names)} queues; at most {MAX_QUEUES} are allowed.")
    for name in names:
        if name == STANDALONE:
            raise CommandError("Services have consumers of their own: run_worker --standalone.")
        if problem := queue_problem(name):
            raise CommandError(f"--queue: {problem}")
    return names


class Command(SchedulingCommand):
    help = "Runs published executions in child processes, until SIGTERM or Ctrl-C; then drains."

    def add_arguments(self, parser: CommandParser) -> None:
        """The options of a consumer."""
        parser.add_argument("--concurrency", type=int, default=1, help="runs at once (default 1)")
        which = parser.add_mutually_exclusive_group()
        which.add_argument("--queue", default=MAIN, help="serve these queues only, such as main,reports (default main)")
        parser.add_argument("--only", default="", help="run these handlers only, such as reports.*,sync_*")
        parser.add_argument("--except", default="", dest="without", help="do not run these handlers, such as slow_*")
        which.add_argument("--standalone", action="store_true", help="serve the schedules marked standalone only")
        parser.add_argument(
            "--prefetch", default="", help="RabbitMQ: messages at once, such as 20 or reports=20,mail=50"
        )
        parser.add_argument("--max-runs", type=int, default=None, help="end after so many runs")
        add_restart_on_change(parser)
        add_metrics_port(parser)

    def work(self, conf: Conf, **options: Any) -> None:
        """Run one consumer."""
        concurrency = options["concurrency"]
        if not 1 <= concurrency <= MAX_CONCURRENCY:
            raise CommandError(f"--concurrency must be from 1 to {MAX_CONCURRENCY}, not {concurrency}.")
        if options["max_runs"] is not None and options["max_runs"] < 1:
            raise CommandError("--max-runs must be at least 1.")
        queues = [STANDALONE] if options["standalone"] else _queues(options["queue"])
        prefetch = prefetch_of(options["prefetch"], queues, concurrency, conf.broker_url)
        limit_idle_transactions(conf.lease_seconds)
        with ShutdownRequest(drains=True) as stop, AnswerLimit(connections[DEFAULT_DB_ALIAS], conf.lease_seconds):
            chosen = chosen_handlers(options["only"], options["without"], queues, conf.broker_url)
            broker = open_broker(conf, queues)
            if isinstance(broker, DatabaseBroker) and chosen:
                broker.choose((handler.type, handler.name) for handler in handlers() if handler.name in chosen)
            prefetch = with_batches(prefetch, (each for each in handlers() if each.name in chosen), concurrency)
            follow, most = follows_code(options), options["max_runs"]
            supervisor = Supervisor(
                broker, conf, stop, concurrency=concurrency, queues=queues, chosen=chosen, max_runs=most,
                follow_code=follow, prefetch=prefetch,
            )  # fmt: skip
            with serving_metrics(options), sending(), Watcher():
                supervisor.run()
        leave_for(supervisor.renewal, options)
