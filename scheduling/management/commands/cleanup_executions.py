"""`manage.py cleanup_executions` removes old executions.

`migrate` creates a schedule that runs this command daily at 3 AM.
"""

from __future__ import annotations

import json
from contextlib import ExitStack
from typing import Any

from django.core.management.base import CommandError, CommandParser
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from scheduling.broker import Broker, BrokerError
from scheduling.conf import Conf
from scheduling.core.retention import Rule
from scheduling.execution.retention import Pruned, prune
from scheduling.inbox.failed_messages import FailedMessages
from scheduling.management.base import SchedulingCommand, open_broker
from scheduling.management.cron.closed_pipe import may_be_cut
from scheduling.models.labels import RETENTION_RULES
from scheduling.operations.shapes import VERSION
from scheduling.processes.server_clock import ServerClock


class Command(SchedulingCommand):
    help = "Removes executions that ended long ago. What waits or runs is kept; failures are kept until an age is set."
    clock: type[ServerClock] = ServerClock
    """The clock that a pass compares with the database's."""

    def add_arguments(self, parser: CommandParser) -> None:
        """--days, --dry-run, --max-seconds, --json."""
        parser.add_argument("--days", type=int, help="keep so many days (default: CRON_RETENTION_DAYS, 30)")
        parser.add_argument("--dry-run", action="store_true", help="count, and remove nothing")
        parser.add_argument("--max-seconds", type=float, help="stop after so long; the next pass goes on")
        parser.add_argument("--json", action="store_true", help="write one JSON document")

    @may_be_cut
    def work(self, conf: Conf, **options: Any) -> None:
        """Remove old executions once and print a summary.

        Raises:
            CommandError: an argument is out of bounds, or the clock of this host is wrong.
        """
        if options["max_seconds"] is not None and options["max_seconds"] <= 0:
            raise CommandError("--max-seconds must be more than 0.")
        clock = self.clock()
        clock.compare()
        if not clock.trusted:
            # With a clock that is ahead, everything would be old.
            raise CommandError(
                f"The clock of this host is {clock.skew} the database's. Correct it; nothing is removed."
            )
        with ExitStack() as opened:

            def connect() -> Broker:
                try:
                    broker = open_broker(conf)
                except CommandError as error:  # what needs no broker is removed all the same
                    raise BrokerError(str(error)) from None
                opened.callback(broker.close)
                return broker

            messages = FailedMessages(connect, clock.now())
            try:
                done = prune(
                    clock.now(), options["days"], dry_run=options["dry_run"], max_seconds=options["max_seconds"],
                    released=messages.released,
                )  # fmt: skip
            except (ValueError, OverflowError) as error:
                raise CommandError(str(error)) from None
        days = options["days"] or conf.retention_days
        if options["json"]:
            self.stdout.write(_document(done, messages.problem, dry_run=options["dry_run"]))
        elif options["verbosity"] > 0:
            self._tell(done, messages.problem, days, dry_run=options["dry_run"])

    def _tell(self, done: Pruned, problem: str, days: int, *, dry_run: bool) -> None:
        verb = _("Would delete") if dry_run else _("Deleted")
        # The original contract's words, if they are true.
        by_other_rules = any(done.rules[rule] for rule in Rule if rule not in (Rule.SUCCESS, Rule.ENDED))
        numbers = {
            "verb": verb, "age": "" if by_other_rules else _(" older than %(days)s days") % {"days": days},
            "executions": done.executions, "attempts": done.attempts, "outputs": done.outputs,
            "processes": done.processes, "replays": done.replays, "backfills": done.backfills,
            "refused": done.refused_rows, "tokens": done.tokens, "answers": done.answers, "tallies": done.tallies,
            "alerts": done.alerts, "revisions": done.revisions,
        }  # fmt: skip
        text = _(
            "%(verb)s %(executions)s execution records%(age)s (%(attempts)s attempts, "
            "%(outputs)s pieces of output, %(processes)s process records, %(replays)s replays, "
            "%(backfills)s backfills, %(refused)s records of refused rows, %(tokens)s API tokens, "
            "%(answers)s answers of the API, %(tallies)s tallies, %(alerts)s alerts, "
            "%(revisions)s revisions)."
        )
        self.stdout.write(text % numbers)
        for rule, words in RETENTION_RULES.items():
            if number := done.rules[rule]:
                self.stdout.write(f"  {words}: {number}")
        if done.held:
            held = ngettext(
                "%(count)s discarded execution stays, because the failed queue may still have its message.",
                "%(count)s discarded executions stay, because the failed queue may still have their messages.",
                done.held,
            )
            self.stdout.write(f"{held % {'count': done.held}} {problem}".strip())
        if not done.complete:
            self.stdout.write(_("The time was over before the end; the next pass goes on."))


COUNTED = (
    "executions", "attempts", "outputs", "processes", "handler_sets", "replays", "backfills", "refused_rows",
    "breakers", "limits", "tokens", "answers", "tallies", "alerts", "revisions", "held", "complete",
)  # fmt: skip


def _document(done: Pruned, problem: str, *, dry_run: bool) -> str:
    counts = {name: getattr(done, name) for name in COUNTED}
    rules = {str(rule.value): done.rules[rule] for rule in Rule}
    document = {"version": VERSION, "kind": "cleanup", "dry_run": dry_run, **counts, "rules": rules, "problem": problem}
    return json.dumps(document, indent=2, ensure_ascii=False)
