"""Turns the lines of a crontab into schedules of `run_command`, or says why a line cannot become one."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django.utils.translation import gettext as _

from scheduling.core.cron_error import CronError
from scheduling.core.crontab_lines import CrontabLine, Unreadable, Variable
from scheduling.core.interval_dialect import EVERY
from scheduling.core.run_sentences import NOT_SWITCHED_FROM_CRONTAB
from scheduling.core.shell_commands import Found, NoCommand, management_command, named_user
from scheduling.core.text import visible_text
from scheduling.core.timetables import parse
from scheduling.operations.schedule_import import Item, Part, described, name_from

HANDLER = "run_command"
_PLAIN = ("SHELL", "LOGNAME", "USER", "HOME", "DJANGO_SETTINGS_MODULE")
"""Variables about which nothing is to be done: they change nothing here, or lines are read with them."""


@dataclass(frozen=True)
class Surroundings:
    """Where the crontab belongs.

    Args:
        timezone: in which the lines without a CRON_TZ are read.
        folders: those of this project's `manage.py`. A line with another one belongs to another project.
        settings: the settings module of this project.
        paused: make all schedules paused.
    """

    timezone: str
    folders: Collection[str]
    settings: str
    paused: bool = False


def crontab_items(lines: Iterable[CrontabLine | Variable | Unreadable], around: Surroundings) -> list[Item]:
    """An item for each line that says when and what, or that cannot be read."""
    items, met = list[Item](), Counter[str]()
    for line in lines:
        if isinstance(line, Variable):
            continue
        item = Item(_("line %(number)s") % {"number": line.number}, visible_text(line.text, 200))
        if isinstance(line, Unreadable):
            item.why = line.why
        else:
            try:
                item.parts = [_part(line, around, item.notes, met)]
            except (NoCommand, CronError) as error:
                item.why, item.notes = str(error), []
        items.append(item)
    return items


def variables_told(lines: Iterable[CrontabLine | Variable | Unreadable]) -> list[str]:
    """What to do about the variables that the crontab sets, a sentence for each line."""
    said = []
    for line in lines:
        if isinstance(line, Variable) and line.name not in _PLAIN:
            facts = {"number": line.number, "name": line.name, "value": visible_text(line.value, 80)}
            said.append(_WORDS.get(line.name, _other)(facts))
    return said


def _mail(facts: dict[str, object]) -> str:
    if facts["name"] == "MAILTO" and not facts["value"]:
        said = _("line %(number)s: MAILTO is empty, so cron mails nothing. Here, only alert rules send mails.")
        return said % facts
    return _("line %(number)s: %(name)s=%(value)s. Mails are sent by alert rules: make one for failed runs.") % facts


def _zone_of_times(facts: dict[str, object]) -> str:
    said = _(
        "line %(number)s: CRON_TZ=%(value)s. The times of the lines after it are read in this zone, as cronie does. "
        "Debian's cron ignores CRON_TZ: if yours does, take this line out."
    )
    return said % facts


def _zone(facts: dict[str, object]) -> str:
    said = _(
        "line %(number)s: TZ=%(value)s. It is the zone of the commands, and not of the times. Commands run in the zone "
        "of the settings (TIME_ZONE)."
    )
    return said % facts


def _other(facts: dict[str, object]) -> str:
    said = _(
        "line %(number)s: %(name)s=%(value)s. Commands have the environment of the consumers: set it there if needed."
    )
    if facts["name"] not in _SHOWN and not str(facts["name"]).startswith("LC_"):
        facts = {**facts, "value": "…"}
    return said % facts


_WORDS = {"MAILTO": _mail, "MAILFROM": _mail, "TZ": _zone, "CRON_TZ": _zone_of_times}
_SHOWN = ("PATH", "PYTHONPATH", "LANG", "LANGUAGE", "CONTENT_TYPE", "CONTENT_TRANSFER_ENCODING", "RANDOM_DELAY")
"""Variables whose values are told. Any other may be a secret, and what an import tells may be kept in a log."""


def _part(line: CrontabLine, around: Surroundings, notes: list[str], met: Counter[str]) -> Part:
    _require_times(line.times)
    if line.standard_input is not None:
        said = _(
            "A “%” without a backslash ends the command, and the rest is its standard input. A schedule has none: let "
            "the command read a file, or take an argument."
        )
        raise NoCommand(said)
    found = _found(line)
    settings = found.settings or line.environment.get("DJANGO_SETTINGS_MODULE", "")
    _require_this_project(found.folder, settings, around)
    if found.folder is None and not settings:
        notes.append(_("It names neither a folder nor settings, so it is taken for a command of this project."))
    if line.user:
        notes.append(_("It ran as the user %(user)s. Here it runs as the user of the consumers.") % {"user": line.user})
    if found.has_redirection:
        notes.append(_("Its output went to a file. Here the output of each run is kept."))
    zone_name = line.zone or around.timezone
    values: dict[str, Any] = {
        "name": _name(line, found, zone_name, met),
        "description": described(_("From a crontab: %(line)s") % {"line": line.text}),
        "schedule": line.times,
        "timezone": zone_name,
        "worker": HANDLER,
        "params": {"command": found.command, "args": list(found.args)},
    }
    if around.paused:
        values |= {"status": False, "pause_reason": NOT_SWITCHED_FROM_CRONTAB.format()}
    return Part(values)


def _found(line: CrontabLine) -> Found:
    """The management command of the line.

    Raises:
        NoCommand: there is none. If the line seems to name a user first, the reason says so.
    """
    home = line.environment.get("HOME", "")
    try:
        return management_command(line.command, home)
    except NoCommand:
        user = "" if line.user else named_user(line.command, home)
        if not user:
            raise
    said = _("It seems to name the user “%(user)s” before its command, as in /etc/crontab: give --system.")
    raise NoCommand(said % {"user": visible_text(user, 40)})


def _require_times(times: str) -> None:
    """Raises CronError if the times are none that the dialect accepts."""
    if times == "@reboot":
        raise CronError(_("@reboot has no time. If it must always run, mark a schedule as a service."))
    if times.startswith(EVERY):  # FreeBSD's cron has such words; ours is another one
        raise CronError(_("“%(word)s” is no time of a crontab that is known here.") % {"word": times[:40]})
    parse(times)


def _require_this_project(folder: str | None, settings: str, around: Surroundings) -> None:
    if folder is not None and not {folder, str(Path(folder).resolve())} & set(around.folders):
        said = _("It runs the manage.py of %(folder)s. If that is this project, give --project %(folder)s.")
        raise NoCommand(said % {"folder": visible_text(folder, 100)})
    if settings and settings != around.settings:
        said = _("It runs with the settings %(name)s. This project runs with %(own)s.")
        raise NoCommand(said % {"name": visible_text(settings, 100), "own": around.settings})


def _name(line: CrontabLine, found: Found, zone_name: str, met: Counter[str]) -> str:
    """A name that the same line gets again, wherever it stands. Equal lines are numbered."""
    text = "\0".join((line.times, zone_name, line.user, found.command, *found.args))
    digest = hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:10]
    met[digest] += 1
    ending = digest if met[digest] == 1 else f"{digest}-{met[digest]}"
    return name_from(f"crontab {found.command}", ending)
