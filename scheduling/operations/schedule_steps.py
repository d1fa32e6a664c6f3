"""The plan of a schedule file: what happens to each schedule, and why it cannot happen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from scheduling.operations.params_diff import Change
from scheduling.operations.refused import Problem, Refused


class Act(StrEnum):
    """What happens to a schedule."""

    MAKE = "make"
    CHANGE = "change"
    DELETE = "delete"
    UNCHANGED = "unchanged"


@dataclass(frozen=True)
class Step:
    """What happens to one schedule.

    Args:
        pk: the row; None for a new one.
        version: the version of the row that was compared.
        edits: the fields that differ, with the old and the new values. Secrets are masked.
    """

    act: Act
    name: str
    pk: int | None = None
    version: str = ""
    values: Mapping[str, Any] | None = None
    edits: tuple[Change, ...] = ()


@dataclass(frozen=True)
class Plan:
    """What a file would change.

    Args:
        source: the name of the file that owns the schedules.
        steps: one for each schedule, in the order of their names; deletions come first.
        problems: why the plan cannot be carried out. The `field` begins with the name of the schedule.
        notes: sentences about what the file does not decide.
        needs_count: whether a person must confirm the number of deletions, because they are all or most schedules.
        calendars: one step for each calendar of the file, in the order of their names.
    """

    source: str
    steps: tuple[Step, ...]
    problems: tuple[Problem, ...] = ()
    notes: tuple[str, ...] = ()
    needs_count: bool = False
    calendars: tuple[Step, ...] = ()

    def of(self, act: Act) -> list[Step]:
        """The steps with this act."""
        return [step for step in self.steps if step.act is act]

    @property
    def is_drift(self) -> bool:
        """Whether the rows differ from the file."""
        return any(step.act is not Act.UNCHANGED for step in (*self.calendars, *self.steps))


@dataclass(frozen=True)
class Rules:
    """What a caller allows.

    Args:
        prune: delete the schedules that the file owns and does not hold any more.
        take_over: also take schedules that another file owns, and a schedule without a name that has another target.
        allow_secrets: accept values of secret params.
    """

    prune: bool = False
    take_over: bool = False
    allow_secrets: bool = False


def of_entry(name: str, refused: Refused) -> list[Problem]:
    """The problems of one entry. Each `field` begins with the name of the entry."""
    if not refused.problems:
        return [Problem(name, refused.code, refused.said)]
    return [replace(one, field=f"{name}.{one.field}" if one.field else name) for one in refused.problems]
