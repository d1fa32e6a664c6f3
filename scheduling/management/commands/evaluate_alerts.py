"""`manage.py evaluate_alerts` evaluates the alerts once. A crontab runs it where no process of this project does."""

from __future__ import annotations

import json
import sys
import threading
import time
from typing import Any

from django.core.management.base import CommandError, CommandParser

from scheduling.alerts.evaluator import BROKER_SECONDS, Evaluator
from scheduling.alerts.watcher import impatient
from scheduling.conf import Conf
from scheduling.management.base import FAILED, SchedulingCommand
from scheduling.management.cron.closed_pipe import may_be_cut
from scheduling.operations.shapes import VERSION

DEFAULT_SECONDS = 50
"""A crontab starts the command each minute."""

MOST_SECONDS = 600

SAW_TOO_LITTLE = (
    f"The broker cannot be reached. The command looks at it for {BROKER_SECONDS:g} s, so it cannot evaluate rules that "
    "wait for longer."
)


class Command(SchedulingCommand):
    needs_tables = False  # its own sentence and its JSON document tell it
    help = "Evaluates the alerts once and sends what is due, unless another process does. For a crontab."

    def add_arguments(self, parser: CommandParser) -> None:
        """--max-seconds, --json."""
        limit = "end after so long, even if a server has not answered yet (default: %(default)s)"
        parser.add_argument("--max-seconds", type=int, default=DEFAULT_SECONDS, help=limit)
        parser.add_argument("--json", action="store_true", help="write one JSON document")

    @may_be_cut
    def work(self, conf: Conf, **options: Any) -> None:
        """Evaluate once, and print one sentence. The exit code is FAILED if it was not possible.

        Raises:
            CommandError: the time is out of bounds.
        """
        seconds = options["max_seconds"]
        if not 1 <= seconds <= MOST_SECONDS:
            raise CommandError(f"--max-seconds must be from 1 to {MOST_SECONDS}, not {seconds}.")
        until = time.monotonic() + seconds
        woken = threading.Event()
        with impatient():
            evaluator = Evaluator(woken.set)
            try:
                evaluator.prepare(seconds * 0.8)
                evaluated = not evaluator.problem and evaluator.turn()
                while not evaluator.idle and (left := until - time.monotonic()) > 0:
                    woken.wait(left)
                    woken.clear()
                    evaluator.between()
                late, saw_too_little = not evaluator.idle, evaluator.saw_too_little
            finally:
                evaluator.close()
        if options["verbosity"] > 0 or options["json"] or evaluator.problem:
            text = _sentence(evaluator.problem, evaluated=evaluated, late=late)
            if evaluated and saw_too_little:
                text = f"{text} {SAW_TOO_LITTLE}"
            self._say(text, evaluator, evaluated, as_json=options["json"])

    def _say(self, text: str, evaluator: Evaluator, evaluated: bool, *, as_json: bool) -> None:
        if as_json:
            document = {"version": VERSION, "kind": "evaluation", "evaluated": evaluated, "text": text}
            self.stdout.write(json.dumps(document, ensure_ascii=False))
        else:
            self.stdout.write(text)
        if evaluator.problem:
            sys.exit(FAILED)


def _sentence(problem: str, *, evaluated: bool, late: bool) -> str:
    if problem:
        return problem
    if not evaluated:
        return "Another process evaluates the alerts."
    if late:
        return "The alerts were evaluated. A server has not answered yet; its message is tried again later."
    return "The alerts were evaluated."
