"""Writes the schedules that an actor sees as entries of a schedule file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from django.utils.translation import gettext as _

from scheduling.core.schedule_files import MAX_SCHEDULES, Entry
from scheduling.core.text import visible_text
from scheduling.handlers.targets import handler_of
from scheduling.models import Scheduler
from scheduling.operations import calendars, schedules
from scheduling.operations.actor import Actor
from scheduling.operations.calendar_files import LONGEST_EXPORTED
from scheduling.operations.calendar_files import entry_of as calendar_entry
from scheduling.operations.refused import Code, Refused
from scheduling.operations.schedule_entry import entry_of, exported
from scheduling.operations.shaping import each_usable

CHUNK = 500


@dataclass(frozen=True)
class LeftOut:
    """A schedule that no file can hold: its primary key, and the reason as a part of a sentence."""

    id: int
    reason: str

    def __str__(self) -> str:
        return _("Schedule %(id)s is left out: %(reason)s.") % {"id": self.id, "reason": self.reason}


@dataclass
class Export:
    """What a file holds and does not hold.

    Args:
        left_out: the schedules that belong into the file, but that it cannot hold.
        notes: sentences about all that the file does not hold.
    """

    entries: list[Entry] = field(default_factory=list)
    calendars: dict[str, Entry] = field(default_factory=dict)
    """The calendars that the schedules name, by name."""
    left_out: list[LeftOut] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def leave_out(self, key: int, reason: str) -> None:
        """Note a schedule that the file cannot hold."""
        self.left_out.append(LeftOut(key, reason.rstrip(".")))
        self.notes.append(str(self.left_out[-1]))


def export(actor: Actor, chosen: Sequence[str] = (), source: str | None = None) -> Export:
    """The entries of schedules, without secrets. Schedules that code has made from `@worker(schedule=)` are left out.

    Args:
        chosen: the ids, names or beginnings of names of the schedules; empty: all that the actor sees.
        source: only the schedules that the file with this name owns; None: whatever their owner is.

    Raises:
        Refused: FORBIDDEN, NOT_FOUND or AMBIGUOUS; INVALID if there are more schedules than a file holds.
    """
    rows = schedules.seen(actor)
    some = rows if source is None else rows.filter(source_file=source)
    if chosen:
        some = some.filter(pk__in={schedules.find(actor, text).pk for text in chosen})
    found = some.order_by("pk").values_list("pk", "source_file")[: MAX_SCHEDULES + 1]
    keys = [key for key, file in found if source in (None, file)]  # MariaDB ignores case
    if len(keys) > MAX_SCHEDULES:
        raise Refused(Code.INVALID, _("A file holds at most %(count)s schedules.") % {"count": MAX_SCHEDULES})
    made = Export()
    related = schedules.with_related(rows)
    for start in range(0, len(keys), CHUNK):
        usable, unusable = each_usable(keys[start : start + CHUNK], related.in_bulk)
        for row in usable:
            _add(actor, made, row)
        for bad in unusable:
            made.leave_out(bad.id, bad.unusable)
    return made


def _add_calendar(actor: Actor, made: Export, row: Scheduler) -> None:
    """Add the calendar of a schedule, if the actor may see it and it is not too long."""
    if row.calendar is None or row.calendar.name in made.calendars or not any(map(actor.has_perm, calendars.VIEW)):
        return
    if len(row.calendar.entries) > LONGEST_EXPORTED:
        said = _("The calendar “%(name)s” is left out, because it is too long.")
        note = said % {"name": visible_text(row.calendar.name, 100)}
        made.notes += [note] if note not in made.notes else []
    elif actor.visible.shows(row.calendar):
        made.calendars[row.calendar.name] = calendar_entry(row.calendar)


def _add(actor: Actor, made: Export, row: Scheduler) -> None:
    name = visible_text(row.name or row, 120)
    if row.is_worker_default:
        made.notes.append(_("%(name)s is left out, because the code of its worker makes it.") % {"name": name})
        return
    if row.after is not None and not actor.visible.shows(row.after):
        made.leave_out(row.pk, _("it waits for a schedule that you may not see"))
        return
    _add_calendar(actor, made, row)
    try:
        made.entries.append(entry_of(exported(row)))
    except ValueError as error:
        made.leave_out(row.pk, visible_text(error, 300))
        return
    if row.params and handler_of(row) is None:
        said = _("%(name)s: its code is not known here, so its parameters are left out. They may be secret.")
        made.notes.append(said % {"name": name})
