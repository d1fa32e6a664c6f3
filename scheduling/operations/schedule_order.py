"""The order in which the steps of a schedule file are carried out: a schedule comes after the one that it waits for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from django.utils.translation import gettext as _

from scheduling.core.after import chain, is_circle
from scheduling.core.chunks import chunks
from scheduling.core.text import visible_text
from scheduling.models import Scheduler
from scheduling.operations.refused import Problem
from scheduling.operations.schedule_steps import Act, Step


def circles(entries: Iterable[Mapping[str, Any]]) -> list[Problem]:
    """A problem for each entry that would wait for itself, by way of other entries of the file."""
    waits = {entry["name"]: entry.get("after") for entry in entries}
    found = []
    for name, after in waits.items():
        if after is None or after not in waits:
            continue
        names = chain(name, after, waits.get)
        if is_circle(names):
            said = _("The schedules would wait for each other in a circle: %(names)s.")
            found.append(Problem(f"{name}.after", "after", said % {"names": visible_text(" → ".join(names), 1_000)}))
    return found


def ordered(steps: Sequence[Step]) -> list[Step]:
    """The steps in the order in which each can be carried out. Without a schedule that waits, it is their own order."""
    deleted = [step for step in steps if step.act is Act.DELETE]
    others = [step for step in steps if step.act is not Act.DELETE]
    by_name = {step.name: step for step in others}
    made: dict[str, Step] = {}
    for step in others:
        later = [step]
        while (after := (later[-1].values or {}).get("after")) in by_name and by_name[after] not in later:
            later.append(by_name[after])
        made |= {one.name: one for one in reversed(later) if one.name not in made}
    found = list(made.values())
    waits = _waits([step.pk for step in deleted if step.pk is not None])
    if not waits:
        return [*deleted, *found]
    # A schedule is deleted when none waits for it any longer.
    last: list[Step] = []
    left = {step.pk or 0: step for step in deleted}
    while left:
        awaited = {after for pk, after in waits if pk in left}
        free = [pk for pk in left if pk not in awaited] or list(left)  # in a circle, which only plain SQL can write
        last += [left.pop(pk) for pk in free]
    return [*found, *last]


def _waits(keys: Sequence[int]) -> list[tuple[int, int]]:
    """The schedules that wait for these, as pairs of ids."""
    return [
        (pk, after or 0)
        for some in chunks(keys)
        for pk, after in Scheduler.objects.filter(after__in=some).values_list("pk", "after")
    ]
