"""Runs the work of a command that acts for a person, and turns each error into a sentence and an exit code."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any

from django.core.management.base import BaseCommand
from django.db import DatabaseError, InterfaceError, connection
from django.utils.translation import gettext as _

from scheduling.broker import BrokerError
from scheduling.conf import get_conf
from scheduling.core.database_errors import Verdict
from scheduling.core.setting_values import ConfError
from scheduling.management.cron.closed_pipe import discard_output
from scheduling.management.cron.console import Console
from scheduling.management.cron.exit_codes import Exit, exit_of
from scheduling.operations.refused import Code, Refused
from scheduling.processes.database import verdict_of


def guarded(command: BaseCommand, options: Mapping[str, Any], work: Callable[[Console], int]) -> None:
    """Do the work on a console. Raises SystemExit with the exit code, unless that is 0.

    Args:
        options: see `Console`.
        work: returns the exit code. It may raise Refused, and the errors of the settings, the broker and the database.
    """
    try:
        code = _code(Console(command.stdout, command.stderr, options), work)  # type: ignore[arg-type]
        command.stdout.flush()
    except KeyboardInterrupt:
        code = Exit.INTERRUPTED
    except BrokenPipeError:
        discard_output()
        code = Exit.CLOSED_PIPE
    if code:
        sys.exit(int(code))


def _code(console: Console, work: Callable[[Console], int]) -> int:
    """The exit code. Every error becomes a sentence."""
    try:
        _tolerant(sys.stdout, sys.stderr)
        get_conf()
        return work(console)
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
