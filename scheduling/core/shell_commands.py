"""Finds the management command in a line for the shell, if the line runs one and does nothing else.

Nothing is run or expanded. What the shell would do to the words, such as `$HOME`, `*.csv` or a pipe, is refused,
because a schedule hands its words to the command as they are.
"""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from pathlib import PurePosixPath

from scheduling.core.words import gettext as _

_PYTHON = re.compile(r"(?:python|pypy)[0-9.]*")
_REDIRECTION = re.compile(r"(?:(?<=\s)[0-9])?&?>>?\s*(?:&[0-9]|[^\s&|;<>()]+)")
_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=.*", re.DOTALL)
_CHANGE = re.compile(r"cd\s+(\"[^\"$`\\]*\"|'[^']*'|[^\s;&|$`'\"\\*?~]+)\s*(?:&&|;)\s*(.*)", re.DOTALL)
_ACTIVATION = re.compile(r"(?:source|\.)\s+[^\s;&|]*\bactivate\s*(?:&&|;).*", re.DOTALL)
_USER = re.compile(r"([a-z_][a-z0-9_-]*\$?)\s+(.*)", re.DOTALL)
_EXPANDED = re.compile(r"[$`]")
_GLOB = re.compile(r"[*?\[\]{}~]")


_RUNNERS = frozenset({
    "uv", "poetry", "pipenv", "pdm", "hatch", "rye", "nohup", "exec", "time", "setsid", "stdbuf", "unbuffer", "command",
})  # fmt: skip
"""Programs that start another one, and that nothing here has to replace."""


class NoCommand(ValueError):
    """The line runs no management command, or does more than that. The message says why, and what to do."""


@dataclass(frozen=True)
class Found:
    """A management command.

    Args:
        folder: that of its `manage.py`; None if the line names none, as with `django-admin`, or a relative one.
        settings: the value of `DJANGO_SETTINGS_MODULE` before the command; empty if there is none.
        has_redirection: whether the line sends its output to a file.
    """

    command: str
    args: tuple[str, ...]
    folder: str | None = None
    settings: str = ""
    has_redirection: bool = False


def management_command(line: str, home: str = "") -> Found:
    """The management command that a line for the shell runs.

    Args:
        home: the folder in which the shell begins; empty if it is not known.

    Raises:
        NoCommand: it runs another program, or needs a shell.
    """
    folder: str | None = None
    rest = line.strip()
    if change := _CHANGE.fullmatch(rest):
        folder, rest = change[1].strip("\"'"), change[2].strip()
    if _ACTIVATION.fullmatch(rest):
        said = _(
            "It activates a virtual environment. A command runs in that of the consumers: take it out of the line."
        )
        raise NoCommand(said)
    rest, redirections = _without_redirections(rest)
    words = _words(rest)
    settings = ""
    while words and _ASSIGNMENT.fullmatch(words[0]):
        name, _equals, value = words.pop(0).partition("=")
        if name != "DJANGO_SETTINGS_MODULE":
            said = _("It sets {name} for this command. Set it for the consumers, and take it out of the line.")
            raise NoCommand(said.format(name=name))
        settings = value
    where, command, args = _split(words)
    path = None if where is None else PurePosixPath(home, folder or "", where).parent
    known = str(path) if path is not None and path.is_absolute() else None
    return Found(command, tuple(args), known, settings, redirections)


def named_user(line: str, home: str = "") -> str:
    """The user before a command, as in a line of `/etc/crontab`; empty if the line does not look like one.

    Call it with a line that `management_command` refuses.
    """
    found = _USER.fullmatch(line.strip())
    if found is None or found[1] in _RUNNERS or _instead_of(found[1]):
        return ""
    try:
        management_command(found[2], home)
    except NoCommand:
        return ""
    return found[1]


def _without_redirections(line: str) -> tuple[str, bool]:
    """The line without redirections of its output at the end."""
    found = False
    while match := re.search(rf"\s*{_REDIRECTION.pattern}\s*$", line):
        if _in_quotes(line, match.start()):
            break
        line, found = line[: match.start()], True
    return line, found


def _in_quotes(line: str, place: int) -> bool:
    try:
        shlex.split(line[:place])
    except ValueError:
        return True
    return False


def _words(line: str) -> list[str]:
    lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    lexer.commenters = ""
    try:
        words = list(lexer)
    except ValueError:
        raise NoCommand(_("Its quotes are not closed.")) from None
    if operator := next((word for word in words if word and set(word) <= set("();<>|&")), None):
        said = _("It has “{operator}”, and a schedule has no shell. Write a management command that does all of it.")
        raise NoCommand(said.format(operator=operator))
    if _EXPANDED.search(re.sub(r"'[^']*'", "", line)):
        raise NoCommand(_("The shell replaces “$” and “`” in it, and a schedule has no shell. Write the value."))
    if _GLOB.search(re.sub(r"'[^']*'|\"[^\"]*\"|\\.", "", line)):
        raise NoCommand(
            _("The shell replaces signs such as “*” and “~” in it, and a schedule has no shell. Write the names.")
        )
    return words


def _split(words: list[str]) -> tuple[str | None, str, list[str]]:
    """The path of `manage.py`, if it is named, the command, and its arguments."""
    if not words:
        raise NoCommand(_("There is no command."))
    program, rest = words[0], words[1:]
    name = PurePosixPath(program).name
    if instead := _instead_of(name):
        raise NoCommand(instead)
    if name in _RUNNERS:
        shown = f"{name} run" if rest[:1] == ["run"] else name
        said = _("It runs through “{name}”, and a command runs in the process of a consumer. Take it out of the line.")
        raise NoCommand(said.format(name=shown))
    where, rest = _arguments(program, name, rest)
    if not rest or rest[0].startswith("-"):
        raise NoCommand(_("There is no management command after it."))
    return where, rest[0], rest[1:]


def _instead_of(name: str) -> str:
    """What to do instead of this program that starts others; empty for another program."""
    user = _("It runs through “{name}”: start the consumers as this user, and take it out of the line.")
    return {
        "flock": _(
            "It runs through “flock”: let the schedule leave a new run out (overlap: skip), "
            "and take it out of the line."
        ),
        "timeout": _("It runs through “timeout”: give the schedule a time limit, and take it out of the line."),
        "nice": _("It runs through “nice”: start the consumers with `nice`, and take it out of the line."),
        "ionice": _("It runs through “ionice”: start the consumers with `ionice`, and take it out of the line."),
        "sudo": user.format(name="sudo"),
        "su": user.format(name="su"),
        "env": _("It runs through “env”: set the environment of the consumers, and take it out of the line."),
        "chronic": _(
            "It runs through “chronic”. Take it out of the line: the output of each run is kept, and only failures are "
            "told."
        ),
    }.get(name, "")


def _arguments(program: str, name: str, rest: list[str]) -> tuple[str | None, list[str]]:
    """The path of `manage.py`, if it is named, and the words after it."""
    if name == "manage.py":
        return program, rest
    if name in ("django-admin", "django-admin.py"):
        return None, rest
    if not _PYTHON.fullmatch(name):
        raise _other(name)
    while rest and rest[0] in ("-u", "-B", "-O"):  # they change nothing for a run
        rest = rest[1:]
    if rest[:2] == ["-m", "django"]:
        return None, rest[2:]
    if rest and PurePosixPath(rest[0]).name == "manage.py":
        return rest[0], rest[1:]
    raise _other(name)


def _other(name: str) -> NoCommand:
    said = _("It runs “{name}”, which is no management command. Write one, or a worker, that does the same.")
    return NoCommand(said.format(name=name[:60]))
