"""Reads the lines of a crontab: a user's, or a system's with a column for the user. Nothing is run."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

MAX_BYTES = 1_000_000

_ASSIGNMENT = re.compile(r"""\s*(?:"([^"]*)"|'([^']*)'|([A-Za-z_][A-Za-z0-9_]*))\s*=\s*(.*?)\s*""")
_NICKNAME = re.compile(r"(@[A-Za-z_]+)\s+(.*)")
_FIELDS = re.compile(r"(-?\S+)\s+(\S+)\s+(\S+)\s+(\S+)\s+(\S+)\s+(.*)")
ZONES = ("CRON_TZ",)
"""The variables that say in which zone the times of the lines after them are read. TZ is only for the commands."""


@dataclass(frozen=True)
class CrontabLine:
    """A line that says when and what.

    Args:
        number: from 1.
        times: five fields with single spaces, or a word such as `@daily`.
        command: as the shell gets it: `\\%` is `%`.
        standard_input: what stands after the first `%`; None without one.
        user: of a system's crontab; empty in that of a user.
        zone: that of the last CRON_TZ before the line; empty if there is none.
        environment: the names and values that were set before the line.
    """

    number: int
    text: str
    times: str
    command: str
    standard_input: str | None = None
    user: str = ""
    zone: str = ""
    environment: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Variable:
    """A line that sets a variable."""

    number: int
    name: str
    value: str


@dataclass(frozen=True)
class Unreadable:
    """A line that is neither. `why` is a sentence."""

    number: int
    text: str
    why: str


def read_crontab(text: str, *, system: bool) -> Iterator[CrontabLine | Variable | Unreadable]:
    """The lines of a crontab, without comments and empty lines.

    Args:
        system: whether each line has a user before its command, as in `/etc/crontab`.
    """
    environment: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), 1):
        stripped = line.strip()
        if not stripped or stripped.startswith("#"):
            continue
        if found := _ASSIGNMENT.fullmatch(line):
            name = found[1] or found[2] or found[3]
            environment[name] = _unquoted(found[4])
            yield Variable(number, name, environment[name])
        else:
            yield _line(number, stripped, system, dict(environment))


def _line(number: int, text: str, system: bool, environment: dict[str, str]) -> CrontabLine | Unreadable:
    if found := _NICKNAME.fullmatch(text):
        times, rest = found[1].lower(), found[2]
    elif found := _FIELDS.fullmatch(text):
        # A hyphen before the minute keeps cron from logging the start.
        times, rest = " ".join(found.groups()[:5]).removeprefix("-"), found[6]
    else:
        return Unreadable(number, text, "There are not five fields of time and a command.")
    user = ""
    if system:
        user, *words = rest.split(maxsplit=1)
        if not words:
            return Unreadable(number, text, "There is no command after the user.")
        rest = words[0]
    command, standard_input = _at_percent(rest.strip())
    zone = next((environment[name] for name in ZONES if environment.get(name)), "")
    return CrontabLine(number, text, times, command, standard_input, user, zone, environment)


def _unquoted(value: str) -> str:
    return value[1:-1] if len(value) > 1 and value[0] == value[-1] and value[0] in "\"'" else value


def _at_percent(command: str) -> tuple[str, str | None]:
    """The command, and what stands after the first `%` without a backslash: cron gives it to the standard input."""
    parts = re.split(r"(?<!\\)%", command, maxsplit=1)
    return parts[0].replace("\\%", "%").strip(), None if len(parts) == 1 else parts[1]
