"""Finds the schedule for which another one waits, by the name or the id that a client gives."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from django.utils.translation import gettext as _

from scheduling.core.schedule_files import nameless, nameless_key
from scheduling.core.text import visible_text
from scheduling.models import Scheduler
from scheduling.operations.actor import Actor
from scheduling.operations.refused import Problem

KEYS = ("after", "after_id")
"""A predecessor is given by its name or by its id."""


def name_of(row: Scheduler) -> str:
    """The name by which files and clients find a schedule; `schedule-<id>` if it has none."""
    return row.name or nameless(row.pk)


def named(actor: Actor, name: str) -> Scheduler | None:
    """The schedule with this name; for `schedule-<id>` also the schedule with this id, if it has no name."""
    rows = actor.visible.schedules()
    found = next((row for row in rows.filter(name=name)[:2] if row.name == name), None)  # MariaDB ignores case
    if found is None and (key := nameless_key(name)) is not None:
        found = rows.filter(pk=key, name__isnull=True).first()
    return found


def take(actor: Actor, row: Scheduler, values: Mapping[str, Any]) -> Iterator[Problem]:
    """Write the predecessor into the row, which is not saved.

    No predecessor is given: the row gets none, unless it has one that the actor does not see, which stays.
    """
    asked = {key: values[key] for key in KEYS if values.get(key)}
    if not asked:
        if any(key in values for key in KEYS) and not is_hidden(actor, row):
            row.after = None
        return
    found = dict[int, Scheduler]()
    for key, value in asked.items():
        one = named(actor, value) if key == "after" else actor.visible.schedules().filter(pk=value).first()
        if one is None:
            said = _("There is no schedule “%(name)s”, or you may not see it.")
            yield Problem(key, "after", said % {"name": visible_text(value, 100)})
            return
        found[one.pk] = one
    if len(found) > 1:
        yield Problem("after", "after", _("The name and the id are those of two schedules."))
        return
    row.after = next(iter(found.values()))


def is_hidden(actor: Actor, row: Scheduler) -> bool:
    """Whether the row waits for a schedule that the actor does not see."""
    if row.after_id is None or not actor.visible.is_limited or seen_names(actor, [row.after_id]):
        return False
    return Scheduler.objects.filter(pk=row.after_id).exists()  # plain SQL may have deleted it


def seen_names(actor: Actor, keys: Collection[int | None]) -> dict[int, str]:
    """The names of those of the schedules that the actor sees, by id. Without ids, no query is made."""
    wanted = {pk for pk in keys if pk is not None}
    rows = actor.visible.schedules().filter(pk__in=wanted).values_list("pk", "name") if wanted else ()
    return {pk: name or nameless(pk) for pk, name in rows}
