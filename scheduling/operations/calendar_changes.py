"""Makes, changes and deletes calendars in the name of an actor."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from copy import copy
from typing import Annotated, Any

from django.contrib.admin.models import ADDITION, DELETION
from django.contrib.auth.models import Group
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from django.db.models import ProtectedError
from django.utils.translation import gettext as _
from pydantic import BaseModel, ConfigDict, Field, StrictStr

from scheduling.core.calendar_entries import LONGEST_TEXT
from scheduling.core.text import visible_text
from scheduling.models import Calendar
from scheduling.models.visibility import visibility_by_groups
from scheduling.operations.actor import Actor
from scheduling.operations.alert_rules import is_own
from scheduling.operations.audit import VALUE_MAX_CHARS, record
from scheduling.operations.calendars import find, version
from scheduling.operations.entries_diff import entries_edit
from scheduling.operations.params_diff import Change
from scheduling.operations.refused import Code, Problem, Refused, problems_of
from scheduling.processes.conflicts import again_after_conflicts
from scheduling.processes.database import locking

ADD = "scheduling.add_calendar"
CHANGE = "scheduling.change_calendar"
DELETE = "scheduling.delete_calendar"

TEXTS = ("name", "description", "timezone", "entries")


class CalendarValues(BaseModel):
    """What a client or a file gives of a calendar. What it leaves out stays as it is; a new one gets the default."""

    model_config = ConfigDict(extra="forbid", title="CalendarValues")

    name: Annotated[StrictStr, Field(max_length=100)] = Field("", description="Unique. A new calendar needs one.")
    description: Annotated[StrictStr, Field(max_length=255)] = ""
    timezone: Annotated[StrictStr, Field(max_length=64)] = Field("", description="An IANA name. Empty: CRON_TIMEZONE.")
    entries: Annotated[StrictStr, Field(max_length=LONGEST_TEXT)] = Field(
        "", description="One entry a line, and then the reason: `every 12-25 Christmas`. Empty: it excludes nothing."
    )
    group: Annotated[StrictStr, Field(max_length=150)] | None = Field(
        None, description="The name of the group whose schedules may name it. Null: all schedules may."
    )

    def given(self) -> dict[str, Any]:
        """The values that the client has sent."""
        return {name: getattr(self, name) for name in self.model_fields_set}


def make(actor: Actor, values: Mapping[str, Any], note: str = "") -> Calendar:
    """Make a calendar.

    Args:
        values: see `CalendarValues`.
        note: the text of the entry in the history.

    Raises:
        Refused: FORBIDDEN or INVALID.
    """
    actor.must(ADD)

    def work() -> Calendar:
        row = Calendar()
        fill(actor, row, {"name": "", "group": None, **values})
        with transaction.atomic():
            _save(row)
            record(actor, [row], note, edits_between(Calendar(), row), ADDITION)
        return row

    return again_after_conflicts(work)


def change(actor: Actor, pk: int, values: Mapping[str, Any], expected: str | None = None, note: str = "") -> Calendar:
    """Change a calendar. The producers plan the schedules that name it anew.

    Args:
        values: see `CalendarValues`.
        expected: the version that the client has read; None: any.
        note: the text of the entry in the history.

    Raises:
        Refused: FORBIDDEN, NOT_FOUND, CHANGED (`extra` has the row) or INVALID.
    """
    actor.must(CHANGE)

    def work() -> Calendar:
        with transaction.atomic():
            row = _locked(actor, pk, expected)
            former = copy(row)
            fill(actor, row, values)
            if edits := edits_between(former, row):
                _save(row)
                record(actor, [row], note, edits)
        return row

    return again_after_conflicts(work)


def delete(actor: Actor, pk: int, expected: str | None = None, note: str = "") -> None:
    """Delete a calendar that no schedule names.

    Raises:
        Refused: FORBIDDEN, NOT_FOUND, CHANGED, or CONFLICT if a schedule names it.
    """
    actor.must(DELETE)

    def work() -> None:
        with transaction.atomic():
            row = _locked(actor, pk, expected)
            record(actor, [row], note, (), DELETION)
            try:
                row.delete()
            except ProtectedError:
                said = _("Schedules name this calendar. Let them name none, or another one, first.")
                raise Refused(Code.CONFLICT, said) from None

    again_after_conflicts(work)


def _locked(actor: Actor, pk: int, expected: str | None) -> Calendar:
    locking(Calendar.objects.filter(pk=pk)).values_list("pk").first()
    row = find(actor, str(pk))
    if row.pk != pk:
        raise Refused(Code.NOT_FOUND, _("There is no such calendar, or you may not see it."))
    check_own(actor, row)
    if expected is not None and version(row) != expected:
        said = _("The calendar has changed since it was read.")
        raise Refused(Code.CHANGED, said, extra={"row": row, "expected": expected})
    return row


def check_own(actor: Actor, row: Calendar) -> None:
    """Refuse a calendar that the actor sees and may not change.

    Raises:
        Refused: FORBIDDEN.
    """
    if not is_own(actor.visible, row):
        said = _("Schedules of all groups may name this calendar. Only users who see all groups change it.")
        raise Refused(Code.FORBIDDEN, said)


def fill(actor: Actor, row: Calendar, values: Mapping[str, Any]) -> None:
    """Write the values into the row, which is not saved.

    Raises:
        Refused: INVALID.
    """
    for name in TEXTS:
        if name in values:
            text = values[name] if name == "entries" else values[name].strip()
            setattr(row, name, text.replace("\r\n", "\n"))
    problems = [*_problems(row, values), *_group_problems(actor, row, values)]
    found = row.problems()
    if problems := [*problems, *(problems_of(ValidationError(found)) if found else ())]:
        raise Refused.invalid(problems)


def _problems(row: Calendar, values: Mapping[str, Any]) -> Iterator[Problem]:
    if "name" in values and not row.name:
        yield Problem("name", "required", _("A calendar has a name."))
    for name in ("name", "description"):
        if name in values and not getattr(row, name).isprintable():
            yield Problem(name, "characters", _("It has characters that cannot be printed."))


def _group_problems(actor: Actor, row: Calendar, values: Mapping[str, Any]) -> Iterator[Problem]:
    if "group" not in values:
        return
    own, name = visibility_by_groups(actor).groups, values["group"]
    if name is None and actor.visible.is_limited and (row.pk is None or row.group is not None):
        yield Problem("group", "group", _("You do not see all groups, so name a group that you are a member of."))
        return
    groups = Group.objects.all() if own is None else Group.objects.filter(pk__in=own)
    group = groups.filter(name=name).first() if name else None
    if name is not None and group is None:
        yield Problem("group", "group", _("You may choose only a group that you are a member of."))
        return
    row.group = group


def _save(row: Calendar) -> None:
    try:
        with transaction.atomic():
            row.save()
    except ValidationError as error:
        raise Refused.invalid(problems_of(error)) from None
    except IntegrityError:
        raise Refused.value("name", _("Another calendar has this name."), "unique") from None


def edits_between(former: Calendar, row: Calendar) -> list[Change]:
    """What differs. Of the entries, the lines that are new or gone."""
    found = [
        Change(name, _shown(getattr(former, name)), _shown(getattr(row, name)))
        for name in ("name", "description", "timezone", "group")
        if getattr(former, name) != getattr(row, name)
    ]
    return [*found, entries_edit(former.entries, row.entries)] if former.entries != row.entries else found


def _shown(value: object) -> str | None:
    return visible_text(value, VALUE_MAX_CHARS) if value else None
