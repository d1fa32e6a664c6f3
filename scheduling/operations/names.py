"""Finds schedules and targets by the names that pages show. The keys that are found narrow a search of executions.

The tables of schedules and targets are small beside the table of executions, and a page shows names that only these
tables hold. So a search asks for their keys first, and then compares keys.
"""

from __future__ import annotations

from functools import reduce
from operator import or_
from typing import NamedTuple

from django.apps import apps
from django.db.models import Q

from scheduling.core.targets import TARGET_KINDS
from scheduling.models.visibility import Visibility

MOST = 500
"""At most this many schedules, or targets of one type, are found by a name. Older versions of SQLite accept at most 999
parameters in one query."""

SCHEDULE_COLUMNS = (
    "name",
    "description",
    "schedule",
    *(f"{type_}__{column}" for type_, kind in TARGET_KINDS.items() for column in kind.searched),
)
"""The columns with the names of a schedule: its own, and those of its target."""


def schedules_named(text: str, visible: Visibility) -> list[int]:
    """The keys of the newest schedules, at most `MOST`, whose names contain the text in any case of letters.

    Only schedules that are seen are found. Otherwise a search would say which names hidden schedules have.
    """
    named = reduce(or_, (Q(**{f"{column}__icontains": text}) for column in SCHEDULE_COLUMNS))
    return list(visible.schedules().filter(named).order_by("-pk").values_list("pk", flat=True)[:MOST])


class TargetsNamed(NamedTuple):
    """The condition on executions whose target has a name. `cut`: of one type, more than `MOST` targets have it."""

    found: Q
    cut: bool


def targets_named(text: str) -> TargetsNamed:
    """The executions whose target is named so: by its title, or by the name that the execution holds."""
    found, cut = Q(target_name__icontains=text), False
    for type_, kind in TARGET_KINDS.items():
        named = reduce(or_, (Q(**{f"{column}__icontains": text}) for column in kind.searched))
        keys = apps.get_model(kind.model).objects.filter(named).order_by("-pk").values_list("pk", flat=True)
        ids = list(keys[: MOST + 1])
        cut = cut or len(ids) > MOST
        if ids:
            found |= Q(type=type_, target_id__in=ids[:MOST])
    return TargetsNamed(found, cut)
