"""`manage.py cron VERB`: what operators do, from a terminal or a script. docs/commands.md describes the verbs."""

from __future__ import annotations

import sys
from argparse import SUPPRESS
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from scheduling.management.cron.exit_codes import Exit
from scheduling.management.cron.guard import guarded
from scheduling.management.cron.verbs import VERBS
from scheduling.management.cron.whose_name import VARIABLE


class Command(BaseCommand):
    help = "Lists, makes, changes and runs schedules, and works on runs and on the failed inbox."
    requires_system_checks: list[str] = []  # `manage.py doctor` reports them; a script needs a quick answer

    def add_arguments(self, parser: CommandParser) -> None:
        """One subparser for each verb. Each has --as, --json and --no-color."""
        self._parser = parser
        verbs = parser.add_subparsers(dest="verb", metavar="VERB", title="verbs")
        for name, verb in VERBS.items():
            own = verbs.add_parser(name, help=verb.HELP, description=verb.HELP)
            own.add_argument("--as", dest="as_user", metavar="USERNAME", help=f"act as this user (or set {VARIABLE})")
            own.add_argument("--json", action="store_true", help="write one JSON document")
            # The parser of the command has this option, too. A default would replace what it has read.
            no_color = "write no colours (or set NO_COLOR)"
            own.add_argument("--no-color", action="store_true", default=SUPPRESS, help=no_color)
            verb.add_arguments(own)

    def handle(self, *_args: Any, **options: Any) -> None:
        """Run the verb. Without one, print the verbs. Raises SystemExit with the exit code, unless that is 0."""
        if options["verb"] is None:
            self.stderr.write(self._parser.format_help(), style_func=str)
            sys.exit(int(Exit.USAGE))
        guarded(self, options, lambda console: VERBS[options["verb"]].run(console, options))
