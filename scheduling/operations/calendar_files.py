"""Calendars in schedule files: how they stand there, and what a file would change.

A file states the whole calendar. No file owns a calendar, because schedules of several files may name it: a file makes
and changes calendars, and never deletes them.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import Annotated, Any

from django.utils.translation import gettext as _
from pydantic import Field, StrictStr

from scheduling.core.calendar_entries import LONGEST_TEXT
from scheduling.core.schedule_files import Entry
from scheduling.core.text import visible_text
from scheduling.handlers.params_model import ParamsInvalid, instance
from scheduling.models import Calendar
from scheduling.operations import calendar_changes, calendars
from scheduling.operations.actor import Actor
from scheduling.operations.calendar_changes import CalendarValues
from scheduling.operations.refused import Code, Problem, Refused
from scheduling.operations.schedule_steps import Act, Step, of_entry

KIND = "calendar"
"""The first word of the field of a problem, before the name of the calendar."""

LONGEST_EXPORTED = 50_000
"""A calendar with more characters is not exported, because a file has a limited length."""


class CalendarEntry(CalendarValues):
    """The values of a calendar in a file. The entries are a text, or a list of lines."""

    entries: Annotated[StrictStr, Field(max_length=LONGEST_TEXT)] | list[StrictStr] = ""  # type: ignore[assignment]


DEFAULTS = CalendarValues.model_validate({}).model_dump()


def entry_of(row: Calendar) -> Entry:
    """How the calendar stands in a file: its name, its entries, and what differs from a new calendar."""
    values: dict[str, Any] = {
        "name": row.name, "description": row.description, "timezone": row.timezone,
        "group": None if row.group is None else row.group.name,
    }  # fmt: skip
    found = {name: value for name, value in values.items() if name == "name" or value != DEFAULTS[name]}
    return {**found, "entries": row.entries.rstrip("\n").split("\n") if row.entries else []}


def plan_calendars(actor: Actor, entries: Sequence[Entry]) -> tuple[list[Step], list[Problem]]:
    """Compare the calendars of a file with those that the actor sees. Nothing is changed.

    Raises:
        Refused: FORBIDDEN.
    """
    steps, problems = list[Step](), list[Problem]()
    for entry in sorted(entries, key=lambda entry: str(entry["name"])):
        try:
            steps.append(_step(actor, entry))
        except Refused as refused:
            problems += of_entry(f"{KIND} {entry['name']}", refused)
    return steps, problems


def carry_out(actor: Actor, step: Step, note: str) -> None:
    """Make or change a calendar.

    Raises:
        Refused: FORBIDDEN, INVALID, NOT_FOUND or CHANGED.
    """
    if step.act is Act.MAKE:
        calendar_changes.make(actor, step.values or {}, note)
    elif step.act is Act.CHANGE and step.pk is not None:
        calendar_changes.change(actor, step.pk, step.values or {}, step.version, note)


def _step(actor: Actor, entry: Entry) -> Step:
    values, name = _wanted(entry), str(entry["name"])
    try:
        row: Calendar | None = calendars.find(actor, name)
    except Refused as refused:
        if refused.code != Code.NOT_FOUND:
            raise
        row = None
    if row is None or row.name != name:  # a name that is a number may be the id of another calendar
        made = Calendar()
        calendar_changes.fill(actor, made, values)
        return Step(Act.MAKE, name, None, "", values, tuple(calendar_changes.edits_between(Calendar(), made)))
    former = copy(row)
    calendar_changes.fill(actor, row, values)
    edits = tuple(calendar_changes.edits_between(former, row))
    if edits:
        calendar_changes.check_own(actor, former)
    return Step(Act.CHANGE if edits else Act.UNCHANGED, name, row.pk, calendars.version(former), values, edits)


def _wanted(entry: Entry) -> dict[str, Any]:
    """The values that an entry asks for; what it leaves out is the default.

    Raises:
        Refused: INVALID.
    """
    try:
        given = instance(CalendarEntry, entry).model_dump(exclude_unset=True)
    except ParamsInvalid as error:
        raise Refused.invalid(
            Problem(visible_text(name, 80), "invalid", visible_text(said, 500)) for name, said in error.errors.items()
        ) from None
    if isinstance(given.get("entries"), list):
        if any("\n" in line for line in given["entries"]):
            raise Refused.value("entries", _("Each line of the list is one entry."))
        given["entries"] = "\n".join(given["entries"])
    return DEFAULTS | given
