"""Makes schedules of what another program had: lines of a crontab, rows of Celery beat. It never changes one.

Each item is looked at by itself: one that cannot become a schedule is told with its reason, and the others go on. All
schedules of an import are made in one transaction. The unique name arbitrates: what an import of the same source has
made before, or makes at this moment, stays as it is.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from django.db import transaction
from django.utils.translation import gettext as _

from scheduling.core.cron import CronError, ZoneError
from scheduling.core.interval_dialect import EVERY
from scheduling.core.text import visible_text
from scheduling.models import Scheduler
from scheduling.operations import schedules
from scheduling.operations.actor import Actor
from scheduling.operations.next_runs import next_runs
from scheduling.operations.refused import Code, Refused
from scheduling.operations.schedule_check import fill
from scheduling.operations.schedule_entry import target_of
from scheduling.processes.conflicts import again_after_conflicts

NEXT_RUNS = 3
LONGEST_NAME = 100
LONGEST_DESCRIPTION = 255


class Fate(StrEnum):
    """What becomes of a schedule that an import would make."""

    MAKE = "make"
    THERE = "there"
    """An import has made it before."""
    LISTED = "listed"
    """It is not made; a sentence says why."""


@dataclass
class Part:
    """One schedule.

    Args:
        values: for `operations.schedules.make`, with the name.
        why: why it is not made; empty if it is.
        pk: the row that has the name, or that was made.
    """

    values: Mapping[str, Any]
    fate: Fate = Fate.MAKE
    why: str = ""
    pk: int | None = None
    zone_name: str = ""
    next_runs: tuple[datetime, ...] = ()

    @property
    def name(self) -> str:
        """The name of the schedule."""
        return str(self.values["name"])

    def leave(self, why: str) -> None:
        """It is not made."""
        self.fate, self.why, self.next_runs = Fate.LISTED, why, ()


@dataclass
class Item:
    """A line or a row of the source, and the schedules that it becomes.

    Args:
        label: what it is there, such as `line 7`.
        text: what stands there.
        parts: empty if it cannot become a schedule.
        why: the reason if there are no parts.
        notes: sentences about what is not carried over.
        only_here, only_there: the instants of the next two years, in UTC, at which only the schedules run, or only the
            source would have run it.
    """

    label: str
    text: str
    parts: list[Part] = field(default_factory=list)
    why: str = ""
    notes: list[str] = field(default_factory=list)
    only_here: tuple[datetime, ...] = ()
    only_there: tuple[datetime, ...] = ()

    @property
    def is_listed(self) -> bool:
        """Whether a schedule of it is missing."""
        return not self.parts or any(part.fate is Fate.LISTED for part in self.parts)


def name_from(text: str, ending: str) -> str:
    """A name for a schedule. It depends on the arguments alone, so the next import finds it again.

    Args:
        text: any text. If it is such a name already, it stays as it is.
        ending: lower-case letters, digits and hyphens that no other item of the source has.
    """
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode().lower()
    slug = re.sub(r"[._:/-]*[^a-z0-9._:/-]+[._:/-]*", "-", plain).strip("-")
    if slug == text and len(text) <= LONGEST_NAME:
        return text
    return f"{slug[: LONGEST_NAME - len(ending) - 1].rstrip('-')}-{ending}".lstrip("-")


def described(text: str, notes: Sequence[str] = ()) -> str:
    """A description with what is worth keeping of the source."""
    return visible_text(" ".join([text, *notes]).replace("\n", " "), LONGEST_DESCRIPTION)


def examine(actor: Actor, items: Sequence[Item], now: datetime) -> None:
    """Say of each part whether it can be made, and when it would run next. Nothing is changed.

    Raises:
        Refused: FORBIDDEN; the actor may not make schedules.
    """
    actor.must(schedules.ADD)
    met: set[str] = set()
    for item in items:
        for part in item.parts:
            if part.name in met:
                part.leave(_("Another item of this import has the name “%(name)s”, too.") % {"name": part.name})
            else:
                met.add(part.name)
                _examine(actor, part, now)
        if any(part.fate is Fate.LISTED for part in item.parts):  # all of them, or none
            for part in item.parts:
                if part.fate is Fate.MAKE:
                    part.leave(_("Another part of it cannot be made."))


def carry_out(actor: Actor, items: Sequence[Item], source: str) -> None:
    """Make what `examine` has found fit to be made, in one transaction.

    A name that another import has taken meanwhile is told as `Fate.THERE`.

    Args:
        source: for the history, such as `crontab`.

    Raises:
        Refused: a schedule cannot be made any more. Nothing was made.
    """
    parts = [part for item in items for part in item.parts if part.fate is Fate.MAKE]
    made: dict[str, int | None] = {}

    def work() -> None:
        made.clear()
        with transaction.atomic():
            for part in sorted(parts, key=lambda part: part.name):  # two imports wait for each other in one order
                made[part.name] = _make(actor, part, source)

    again_after_conflicts(work)
    for part in parts:
        part.pk = made[part.name]
        if part.pk is None:
            part.fate, part.pk = (
                Fate.THERE,
                Scheduler.objects.filter(name=part.name).values_list("pk", flat=True).first(),
            )


def _make(actor: Actor, part: Part, source: str) -> int | None:
    try:
        return schedules.make(actor, part.values, note=f"imported from {source}").pk
    except Refused as refused:
        if {problem.code for problem in refused.problems} != {"unique"}:
            raise
        if Scheduler.objects.filter(name=part.name).exists():
            return None
        # Something else was refused, such as a handler or a user that was deleted at this moment.
        said = _("The database has refused the schedule “%(name)s”. Nothing was made. Import again.")
        raise Refused(Code.CONFLICT, said % {"name": part.name}) from None


def _examine(actor: Actor, part: Part, now: datetime) -> None:
    row = Scheduler()
    stored = Scheduler.objects.filter(name=part.name).first()
    if stored is not None and not actor.visible.shows(stored):
        part.leave(_("Another schedule has this name already."))
        return
    try:
        fill(actor, row, {**part.values, "name": None} if stored is not None else part.values)
        part.zone_name, part.next_runs = row.zone_name, tuple(next_runs(row, NEXT_RUNS, now))
    except Refused as refused:
        part.leave(refused.said)
        return
    except (CronError, ZoneError) as error:
        part.leave(str(error))
        return
    if stored is None:
        return
    part.fate, part.pk = Fate.THERE, stored.pk
    if differing := _differing(row, stored):
        said = _(
            "A schedule has this name and differs in: %(fields)s. It stays as it is: it was edited since an import, or "
            "it is another one."
        )
        part.leave(said % {"fields": ", ".join(differing)})


def _differing(row: Scheduler, stored: Scheduler) -> list[str]:
    """The names of the values that make another schedule of it. What operators often edit is not among them."""
    found = {
        "target": (target_of(row), target_of(stored)),
        "schedule": (_times(row), _times(stored)),
        "date_time": (row.date_time, stored.date_time),
        "timezone": (row.zone_name, stored.zone_name),
        "params": (row.params, stored.params),
    }
    return [name for name, (new, old) in found.items() if new != old]


def _times(row: Scheduler) -> str:
    """The expression. The beginning of an interval moves with each run of beat, so it does not count."""
    text = row.schedule
    return text.partition(" from ")[0] if text.lower().startswith(EVERY) else text
