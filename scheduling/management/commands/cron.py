"""`manage.py cron VERB`: what operators do, from a terminal or a script. docs/commands.md describes the verbs."""

from __future__ import annotations

import os
import sys
from argparse import SUPPRESS
from typing import Any

from django.core.management.base import BaseCommand, CommandParser
from django.db import DatabaseError, InterfaceError, connection
from django.utils.translation import gettext as _

from scheduling.broker import BrokerError
from scheduling.conf import get_conf
from scheduling.core.database_errors import Verdict
from scheduling.core.setting_values import ConfError
from scheduling.management.cron.console import Console
from scheduling.management.cron.exit_codes import Exit, exit_of
from scheduling.management.cron.verbs import VERBS
from scheduling.management.cron.whose_name import VARIABLE
from scheduling.operations.refused import Code, Refused
from scheduling.processes.database import verdict_of


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
        try:
            code = self._guarded(Console(self.stdout, self.stderr, options), options)  # type: ignore[arg-type]
            self.stdout.flush()
        except KeyboardInterrupt:
            code = Exit.INTERRUPTED
        except BrokenPipeError:
            # Python would complain at its end that it cannot flush stdout.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            code = Exit.CLOSED_PIPE
        if code:
            sys.exit(int(code))

    def _guarded(self, console: Console, options: dict[str, Any]) -> int:
        """The exit code. Every error becomes a sentence."""
        try:
            _tolerant(sys.stdout, sys.stderr)
            get_conf()
            return VERBS[options["verb"]].run(console, options)
        except Refused as refused:
            console.refused(refused)
            return exit_of(refused)
        except ConfError as error:
            for line in str(error).splitlines():
                console.note(line)
            return Exit.USAGE
        except BrokerError as error:
            console.refused(Refused(Code.BROKER_AWAY, _("The broker cannot be used: %(error)s") % {"error": error}))
            return Exit.AWAY
        except (DatabaseError, InterfaceError) as error:
            if verdict_of(error) is Verdict.ITEM:
                raise
            said = _("The database %(name)s cannot be used: %(error)s")
            said = said % {"name": connection.settings_dict.get("NAME", ""), "error": error}
            console.refused(Refused(Code.DATABASE_AWAY, said))
            return Exit.AWAY


def _tolerant(*streams: Any) -> None:
    """Let a terminal that cannot show a character get its code instead of an error."""
    for stream in streams:
        if getattr(stream, "errors", None) == "strict" and hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
