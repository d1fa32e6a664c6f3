"""The exit codes of `manage.py cron`. docs/commands.md lists them for scripts, so they never change."""

from __future__ import annotations

from enum import IntEnum

from scheduling.operations.refused import Code, Refused


class Exit(IntEnum):
    """How a command ended."""

    DONE = 0
    NOT_DONE = 1
    """The run has failed or is not over, the installation is not healthy, or a file and the schedules differ."""
    USAGE = 2
    """The command line or the settings cannot be read."""
    NOT_FOUND = 3
    """There is no such row, or the name is that of several rows."""
    REFUSED = 4
    """A permission is missing, a value cannot be used, or the present state does not allow it."""
    AWAY = 5
    """The database or the broker cannot be used."""
    INTERRUPTED = 130
    """Ctrl-C."""
    CLOSED_PIPE = 141
    """The reader of the output, such as `head`, has ended first."""


_BY_CODE: dict[str, Exit] = {
    Code.NOT_FOUND: Exit.NOT_FOUND,
    Code.AMBIGUOUS: Exit.NOT_FOUND,
    Code.BROKER_AWAY: Exit.AWAY,
    Code.DATABASE_AWAY: Exit.AWAY,
}


def exit_of(refused: Refused) -> Exit:
    """The exit code for a refusal."""
    return _BY_CODE.get(refused.code, Exit.REFUSED)
