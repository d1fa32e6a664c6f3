"""Schedule files: schedules as JSON or YAML, for a repository. Reads and writes them, and checks their outline.

    {"version": 1, "schedules": [{"name": "invoices", "schedule": "0 8 * * *", "worker": "shop.invoices"}]}

Each entry has a name. What its other values mean is for the caller to check. A file may also have `calendars`, a list
of calendars by name.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

from scheduling.core import yaml_documents
from scheduling.core.json_bounds import NotStorable, check
from scheduling.core.json_faults import json_fault
from scheduling.core.keys import is_name
from scheduling.core.text import visible_text
from scheduling.core.words import gettext as _
from scheduling.core.words import grouped, ngettext, quoted

Format = Literal["json", "yaml"]
Entry = dict[str, Any]

VERSION = 1
MAX_BYTES = 1_000_000
MAX_SCHEDULES = 10_000
MAX_CALENDARS = 1_000
LONGEST_CALENDAR_NAME = 100
MAX_PROBLEMS = 100
"""So many problems of one file are named. A further one says that there are more."""

_SOURCE = re.compile(r"[A-Za-z0-9._:/-]{1,200}")
_NAMELESS = re.compile(r"schedule-([1-9][0-9]{0,17})")


class FileInvalid(ValueError):
    """A schedule file that cannot be used.

    Args:
        problems: one sentence for each problem.
    """

    def __init__(self, *problems: str) -> None:
        super().__init__(" ".join(problems))
        self.problems = problems


class Contents(NamedTuple):
    """What a file holds, in its order."""

    schedules: list[Entry]
    calendars: list[Entry] = []


def read(data: bytes, format_: Format) -> list[Entry]:
    """The schedules of a file. See `read_whole`."""
    return read_whole(data, format_).schedules


def read_whole(data: bytes, format_: Format) -> Contents:
    """The entries of a file. Each has a usable `name`, and no other entry of its list has it.

    Args:
        data: UTF-8, at most MAX_BYTES. The caller need not read more than one byte beyond this limit.

    Raises:
        FileInvalid: the file cannot be used.
        scheduling.core.yaml_documents.YamlMissing: PyYAML is not installed.
    """
    if len(data) > MAX_BYTES:
        said = _("The file is longer than {most} bytes. Divide it into several files.")
        raise FileInvalid(said.format(most=grouped(MAX_BYTES)))
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise FileInvalid(_("Line {line}: the file is not UTF-8.").format(line=_line(data, error.start))) from None
    if "\x00" in text:
        raise FileInvalid(_("Line {line}: the file holds a NUL character.").format(line=_line(data, data.index(0))))
    whole = _json(text) if format_ == "json" else _yaml(text)
    return Contents(_entries(whole), _calendars(whole))


def write(entries: Sequence[Mapping[str, Any]], format_: Format, calendars: Sequence[Entry] = ()) -> str:
    """The text of a file. Equal entries give the same text. The entries are sorted by name, and params by their keys.

    Calendars stand before the schedules that name them.

    Raises:
        FileInvalid: there are too many entries, or the text is longer than `read` accepts.
        scheduling.core.yaml_documents.YamlMissing: PyYAML is not installed.
    """
    _check_number(entries)
    ordered = [_sorted(entry) for entry in sorted(entries, key=lambda entry: str(entry["name"]))]
    named = {"calendars": sorted(calendars, key=lambda entry: str(entry["name"]))} if calendars else {}
    whole = {"version": VERSION, **named, "schedules": ordered}
    text = _text(whole, format_, False)
    if visible_text(text) != text:  # characters that hide or reorder text are written as codes
        text = _text(whole, format_, True)
    if len(text.encode()) > MAX_BYTES:
        said = _("The file would be longer than {most} bytes. Choose fewer schedules.")
        raise FileInvalid(said.format(most=grouped(MAX_BYTES)))
    return text


def is_source(text: str) -> bool:
    """Whether a schedule can store this name of a file: 1 to 200 ASCII letters, digits and the signs . _ : / -"""
    return _SOURCE.fullmatch(text) is not None


def nameless(key: int) -> str:
    """The name under which a schedule without a name stands in a file."""
    return f"schedule-{key}"


def nameless_key(name: str) -> int | None:
    """The primary key in a name that `nameless` has made; None for another name."""
    found = _NAMELESS.fullmatch(name)
    return None if found is None else int(found[1])


def _text(whole: Any, format_: Format, ascii_only: bool) -> str:
    if format_ == "yaml":
        return yaml_documents.dumps(whole, ascii_only)
    return json.dumps(whole, indent=2, ensure_ascii=ascii_only) + "\n"


def _sorted(entry: Mapping[str, Any]) -> Entry:
    """The entry with its keys in their order, and the keys of all values inside it sorted."""
    return {name: json.loads(json.dumps(value, sort_keys=True)) for name, value in entry.items()}


def _line(data: bytes, position: int) -> int:
    return data.count(b"\n", 0, position) + 1


def _json(text: str) -> Any:
    try:
        return json.loads(text, object_pairs_hook=_object)
    except json.JSONDecodeError as error:
        said = _("Line {line}: the file is not JSON: {fault}.")
        raise FileInvalid(said.format(line=error.lineno, fault=json_fault(error))) from None
    except FileInvalid:
        raise
    except RecursionError:
        raise FileInvalid(_("The file has values that are nested too deep.")) from None
    except ValueError as error:  # a number with thousands of digits
        raise FileInvalid(_("The file is not JSON: {fault}").format(fault=visible_text(error, 200))) from None


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _value in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        said = _("The key “{key}” stands twice in one object.")
        raise FileInvalid(said.format(key=visible_text(twice, 80)))
    return found


def _yaml(text: str) -> Any:
    try:
        return yaml_documents.loads(text)
    except yaml_documents.YamlInvalid as error:
        raise FileInvalid(visible_text(error, 400)) from None


def _entries(whole: Any) -> list[Entry]:
    entries = _list(whole)
    problems, names = [], set[str]()
    for number, entry in enumerate(entries, 1):
        if said := _problem(entry, names):
            problems.append(_("Schedule {number}: {fault}").format(number=number, fault=said))
        else:
            names.add(entry["name"])
    if problems:
        raise FileInvalid(*shortened(problems))
    return entries


def _list(whole: Any) -> list[Any]:
    if not isinstance(whole, dict) or not isinstance(whole.get("schedules"), list):
        said = _("The file is not an object such as {example}.")
        raise FileInvalid(said.format(example='{"version": 1, "schedules": []}'))
    if type(whole.get("version")) is not int or whole["version"] != VERSION:
        said = _("The file has no “version”: {version}. This release reads no other version.")
        raise FileInvalid(said.format(version=VERSION))
    if unknown := sorted(whole.keys() - {"version", "calendars", "schedules"}):
        said = _("The file has unknown keys: {keys}.")
        raise FileInvalid(said.format(keys=visible_text(", ".join(unknown), 200)))
    entries: list[Any] = whole["schedules"]
    _check_number(entries)
    return entries


def _check_number(entries: Sequence[Any]) -> None:
    if len(entries) > MAX_SCHEDULES:
        said = _("A file holds at most {most} schedules, not {count}.")
        raise FileInvalid(said.format(most=grouped(MAX_SCHEDULES), count=grouped(len(entries))))


def _calendars(whole: dict[str, Any]) -> list[Entry]:
    entries = whole.get("calendars", [])
    if not isinstance(entries, list) or len(entries) > MAX_CALENDARS:
        said = _("“calendars” is a list of at most {most} calendars.")
        raise FileInvalid(said.format(most=grouped(MAX_CALENDARS)))
    problems, names = [], set[str]()
    for number, entry in enumerate(entries, 1):
        name = entry.get("name") if isinstance(entry, dict) else None
        if not isinstance(name, str) or not 1 <= len(name) <= LONGEST_CALENDAR_NAME or not name.isprintable():
            said = _("Calendar {number}: it is no object with a “name” of 1 to {most} printable characters.")
            problems.append(said.format(number=number, most=LONGEST_CALENDAR_NAME))
        elif name in names:
            said = _("Calendar {number}: the name “{name}” stands there twice.")
            problems.append(said.format(number=number, name=name))
        else:
            names.add(name)
    if problems:
        raise FileInvalid(*shortened(problems))
    return entries


def shortened(problems: Sequence[str]) -> list[str]:
    """The first problems, and how many more there are."""
    more = len(problems) - MAX_PROBLEMS
    if more <= 0:
        return [*problems]
    said = ngettext("And {count} more problem.", "And {count} more problems.", more)
    return [*problems[:MAX_PROBLEMS], said.format(count=grouped(more))]


def _problem(entry: Any, names: set[str]) -> str:
    """What is wrong with an entry; empty if its outline is right."""
    if not isinstance(entry, dict):
        return _("it is not an object.")
    name = entry.get("name")
    if name is None:
        return _("it has no “name”.")
    if not isinstance(name, str) or not is_name(name):
        shown = visible_text(name, 60)
        said = _("“{name}” is no name. A name has 1 to 100 lower-case letters, digits and the signs . _ : / -")
        return said.format(name=shown)
    if name in names:
        return _("the name “{name}” stands there twice.").format(name=name)
    try:
        check(entry)
    except NotStorable as error:
        return error.about(quoted(name))
    return ""
