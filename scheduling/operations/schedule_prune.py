"""The schedules that a file owns and does not hold any more: they are deleted, or they are in the way of a new one."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

from django.utils.translation import gettext as _

from scheduling.core.schedule_files import nameless
from scheduling.core.text import visible_text
from scheduling.handlers.permission import refusal
from scheduling.models import Scheduler
from scheduling.operations import schedules
from scheduling.operations.actor import Actor
from scheduling.operations.file_rows import FileRows
from scheduling.operations.refused import Problem
from scheduling.operations.schedule_entry import exported, target_of
from scheduling.operations.schedule_stated import Stated
from scheduling.operations.schedule_steps import Act, Step

FEW = 5
"""So many schedules are deleted without `count`, if the file owns others."""


class Gone:
    """The schedules that a file owns and does not hold any more.

    Args:
        met: the primary keys of the rows that the file holds.
    """

    def __init__(self, actor: Actor, rows: FileRows, met: Collection[int]) -> None:
        self._actor, self._rows = actor, rows
        self.keys = sorted(rows.owned.keys() - met, key=lambda pk: rows.owned[pk])

    def deletions(self) -> tuple[list[Step], list[Problem]]:
        """A step for each row that a prune deletes, and a problem for each row that it may not delete.

        An export leaves out a row that no file can hold. So such a row is missing in the file because it is damaged,
        and not because it is not wanted any more.
        """
        steps, problems = [], []
        for row in self._rows.load(self.keys):
            name = visible_text(row.name or nameless(row.pk), 120)
            if refused := refusal(self._actor, row):
                problems.append(Problem(name, "permission", refused))
            try:
                exported(row)
            except ValueError as error:
                problems.append(_kept(name, row.pk, str(error)))
                continue
            steps.append(Step(Act.DELETE, name, row.pk, schedules.version(row)))
        for key in self.keys:
            if said := self._rows.unusable(key):
                problems.append(_kept(visible_text(self._rows.owned[key], 120), key, said))
        return steps, problems

    def copies(self, made: Iterable[Stated]) -> list[Problem]:
        """A problem for each new schedule that has the target and the times of a row which stays."""
        wanted = list(made)
        if not wanted or not self.keys:
            return []
        names = {_likeness(row): row.name or nameless(row.pk) for row in self._rows.load(self.keys)}
        said = _(
            "Schedule “%(name)s”, which this file owns and does not hold any more, has the same target and times. "
            "There would be two copies. Apply the file with --prune, or delete that schedule."
        )
        return [
            Problem(asked.name, "copy", said % {"name": visible_text(name, 120)})
            for asked in wanted
            if (name := names.get((*asked.target.items(), *asked.times)))
        ]

    def needs_count(self, deleted: int) -> bool:
        """Whether a person must confirm so many deletions: all that the file owns, or many and most of them.

        A file of another team may have the same name. It owns no schedule of this file, and would delete all of them.
        """
        owned = len(self._rows.owned)
        return deleted > 0 and (deleted == owned or (deleted > FEW and 2 * deleted > owned))


def _likeness(row: Scheduler) -> tuple[Any, ...]:
    return (*target_of(row).items(), *row.schedule.split(), row.date_time, row.zone_name)


def _kept(name: str, key: int, reason: str) -> Problem:
    said = _("Schedule %(id)s cannot be read, so it is not deleted: %(reason)s. Correct it, or delete it in the admin.")
    return Problem(name, "unusable", said % {"id": key, "reason": visible_text(reason, 300).rstrip(".")})
