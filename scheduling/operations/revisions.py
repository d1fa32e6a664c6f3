"""Lists the revisions of a schedule, undoes one, and restores the state that one of them holds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any

from django.apps import apps
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group
from django.db.models import Model
from django.utils import timezone as clock
from django.utils.translation import gettext as _

from scheduling.core.cron import CronError, ZoneError
from scheduling.core.revisions import HIDDEN, NEW, OLD, PARAMS, Edits, Snapshot, changed_keys, edits_of, undone
from scheduling.core.targets import TARGET_KINDS
from scheduling.core.text import visible_text
from scheduling.execution.edited_plan import as_saved
from scheduling.execution.revision_state import READ_COLUMNS, Stored, digest_for, stored_of
from scheduling.models import Calendar, Scheduler, ScheduleRevision
from scheduling.models.schedule_revision import RevisionKind, RevisionQuerySet
from scheduling.models.visibility import visibility_by_groups
from scheduling.operations import schedules
from scheduling.operations.actor import Actor
from scheduling.operations.refused import Code, Refused
from scheduling.operations.revision_words import key_word
from scheduling.operations.schedule_check import fill
from scheduling.operations.schedule_values import ScheduleValues

LEFT_ALONE = frozenset({"source_file"})
"""An undo leaves the owner alone: only a schedule file that is applied changes it."""

NOT_RESTORED = LEFT_ALONE | {"name"}
"""Code, files and requests find the schedule by its name."""


@dataclass(frozen=True)
class Reversal:
    """What an undo or a restore would do.

    Args:
        number: the revision that is undone, or whose state is restored.
        edits: what changes; never empty.
        unknown: the keys that keep their present values, because no revision holds the former ones.
        values: the same edits as values of a schedule (`schedules.change`).
        version: the version of the schedule that was read.
        note: the text of the entry in the history.
    """

    row: Scheduler
    number: int
    edits: Edits
    unknown: tuple[str, ...]
    values: Mapping[str, Any]
    version: str
    note: str


def revisions_of(actor: Actor, pk: int) -> RevisionQuerySet:
    """The revisions of a schedule, the newest first, also of one that is deleted.

    Raises:
        Refused: FORBIDDEN or NOT_FOUND, also for a schedule that the actor does not see.
    """
    rows = ScheduleRevision.objects.of(pk)
    if not Scheduler.objects.filter(pk=pk).exists():
        actor.must(*schedules.VIEW)
        # The group that it had at the end decides, as it does for the entries of the history.
        last = rows.first()
        if last is not None and visibility_by_groups(actor).shows_group(last.group):
            return rows
    schedules.by_id(actor, pk)
    return rows


def revision_of(actor: Actor, pk: int, number: int) -> ScheduleRevision:
    """One revision of a schedule.

    Raises:
        Refused: FORBIDDEN or NOT_FOUND.
    """
    found = revisions_of(actor, pk).filter(number=number).first()
    if found is None:
        raise Refused(Code.NOT_FOUND, _("The schedule has no revision %(number)s.") % {"number": number})
    return found


def undo_of(actor: Actor, pk: int, number: int) -> Reversal:
    """What the undo of a revision would do: the values that it has changed get their former values again.

    Raises:
        Refused: FORBIDDEN, NOT_FOUND; CONFLICT if a later revision has changed one of the values, or if there is
            nothing to undo; INVALID if the former values cannot be used any more.
    """
    actor.must(schedules.CHANGE)
    row, found = schedules.by_id(actor, pk), revision_of(actor, pk, number)
    if found.kind != RevisionKind.CHANGED:
        said = _("Revision %(number)s has not changed the schedule, so there is nothing to undo.")
        raise Refused(Code.CONFLICT, said % {"number": number})
    edits, unknown = undone(found.changes, LEFT_ALONE)
    stored, newest = _stored(pk), _newest(pk)
    later = set(changed_keys(found.snapshot, stored.since(newest), digest_for(pk))) & edits.keys()
    if later:
        raise Refused(Code.CONFLICT, _conflict(pk, number, sorted(later)))
    if not edits:
        said = _("Revision %(number)s has changed only values that no revision holds, such as secrets.")
        raise Refused(Code.CONFLICT, said % {"number": number})
    return _reversal(actor, row, number, stored.undoing(edits, newest), unknown, f"undo of revision {number}")


def restore_of(actor: Actor, pk: int, number: int) -> Reversal:
    """What it would do to restore the state that a revision holds. The name, the owning file and the secrets stay.

    Raises:
        Refused: FORBIDDEN, NOT_FOUND; CONFLICT if the schedule is in this state; INVALID if the state cannot be used
            any more.
    """
    actor.must(schedules.CHANGE)
    row, found = schedules.by_id(actor, pk), revision_of(actor, pk, number)
    wanted = found.snapshot
    present = _stored(pk).since(wanted)  # the pause by a claimed date counts only if the wanted state has another date
    # A column that the revision does not have is newer than the revision.
    differing = [
        key
        for key in changed_keys(present, wanted, digest_for(pk))
        if key not in NOT_RESTORED and (key in wanted.state or (key.startswith(PARAMS) and wanted.state))
    ]
    edits = edits_of(present, wanted, differing)
    unknown = [key for key, edit in edits.items() if edit.get(NEW) == HIDDEN]
    edits = {key: edit for key, edit in edits.items() if key not in unknown}
    if not edits:
        said = _("The schedule is as revision %(number)s has left it, apart from secrets.")
        raise Refused(Code.CONFLICT, said % {"number": number})
    return _reversal(actor, row, number, edits, unknown, f"state of revision {number} restored")


def reverse(actor: Actor, found: Reversal, reason: str = "") -> Scheduler:
    """Do it, as a new revision. If the schedule has changed since, nothing is done.

    Raises:
        Refused: FORBIDDEN, NOT_FOUND, CHANGED or INVALID.
    """
    return schedules.change(
        actor, found.row.pk, found.values, found.version, note=found.note, reason=reason, undoes=found.number
    )


def after(actor: Actor, found: Reversal) -> Scheduler:
    """The schedule as it would be, not saved.

    Raises:
        Refused: INVALID; the sentence says why it cannot be done.
    """
    stored = schedules.by_id(actor, found.row.pk)
    row = copy(stored)
    fill(actor, row, found.values)
    try:
        return as_saved(stored, row, clock.now())
    except (CronError, ZoneError):
        return row  # its page says what is wrong


def present_snapshot(pk: int) -> Snapshot:
    """The state of the schedule as it is now.

    Raises:
        Refused: NOT_FOUND.
    """
    return _stored(pk).since(_newest(pk))


def _stored(pk: int) -> Stored:
    values = Scheduler.objects.filter(pk=pk).values(*READ_COLUMNS).first()
    if values is None:
        raise Refused(Code.NOT_FOUND, _("There is no schedule %(id)s, or you may not see it.") % {"id": pk})
    return stored_of(values)


def _newest(pk: int) -> Snapshot | None:
    newest = ScheduleRevision.objects.of(pk).first()
    return None if newest is None else newest.snapshot


def _conflict(pk: int, number: int, keys: Sequence[str]) -> str:
    """Which later revision has changed a value again."""
    later = ScheduleRevision.objects.of(pk).filter(number__gt=number)
    for found in later:
        again = [key for key in keys if key in found.changes]
        if again:
            said = _("Revision %(later)s has changed “%(name)s” again. Undo that one first, or restore a state.")
            return said % {"later": found.number, "name": visible_text(key_word(again[0]), 100)}
    said = _("“%(name)s” has another value by now than revision %(number)s has given it.")
    return said % {"name": visible_text(key_word(keys[0]), 100), "number": number}


def _reversal(actor: Actor, row: Scheduler, number: int, edits: Edits, unknown: Sequence[str], note: str) -> Reversal:
    found = Reversal(row, number, edits, tuple(unknown), _values(row, edits), schedules.version(row), note)
    after(actor, found)
    return found


NAMED: dict[str, type[Model]] = {"group_id": Group, "calendar_id": Calendar}
"""Columns that name a row whose name clients give."""


def _values(row: Scheduler, edits: Edits) -> dict[str, Any]:
    """The edits as values of a schedule.

    Raises:
        Refused: INVALID if a row that a value names is gone.
    """
    values: dict[str, Any] = {}
    for key, edit in edits.items():
        value = edit.get(NEW)
        if key.startswith(PARAMS):
            values["params"] = _params(row, edits)
        elif key == "user_id":
            users: Any = get_user_model()
            values["user"] = None if value is None else _named(users, value).get_username()
        elif key in NAMED:
            values[key.removesuffix("_id")] = None if value is None else _named(NAMED[key], value).name
        else:
            if key.removesuffix("_id") in TARGET_KINDS and value is not None:
                _named(apps.get_model(TARGET_KINDS[key.removesuffix("_id")].model), value)
            values[key] = value
    _check_types(values)
    return values


def _check_types(values: dict[str, Any]) -> None:
    """Plain SQL may have changed the revision.

    Raises:
        Refused: INVALID if a value has another type than clients may give.
    """
    try:
        ScheduleValues(**{key: value for key, value in values.items() if key in ScheduleValues.model_fields})
    except ValueError as error:
        said = _("The revision holds values that cannot be used: %(error)s")
        raise Refused.value("", visible_text(said % {"error": error}, 500), "unusable") from None


def _params(row: Scheduler, edits: Edits) -> dict[str, Any]:
    params = dict(row.params) if isinstance(row.params, dict) else {}
    for key, edit in edits.items():
        if key.startswith(PARAMS):
            name = key.removeprefix(PARAMS)
            if NEW in edit:
                params[name] = edit[NEW]
            else:
                params.pop(name, None)
    return params


def _named(model: type[Model], key: Any) -> Any:
    """The row with this key.

    Raises:
        Refused: INVALID.
    """
    found = model._default_manager.filter(pk=key).first() if type(key) is int else None
    if found is None:
        said = _("The %(kind)s with the id %(id)s is gone, so this state cannot come back.")
        facts = {"kind": model._meta.verbose_name, "id": visible_text(key, 40)}
        raise Refused.value(str(model._meta.model_name), said % facts, "gone")
    return found


def old_and_new(edit: Mapping[str, Any]) -> tuple[Any, Any]:
    """The two values of an edit; None for a parameter that does not exist."""
    return edit.get(OLD), edit.get(NEW)
