"""Applies schedule files in tests."""

from __future__ import annotations

import pytest

from scheduling.core.schedule_files import Entry
from scheduling.models import Scheduler
from scheduling.operations.actor import Actor
from scheduling.operations.refused import Refused
from scheduling.operations.schedule_apply import carry_out
from scheduling.operations.schedule_plan import plan
from scheduling.operations.schedule_steps import Plan, Rules

SOURCE = "ops/jobs.yaml"
YEARLY = "0 0 1 1 *"


def applied(actor: Actor, entries: list[Entry], source: str = SOURCE, count: int | None = None, **rules: bool) -> Plan:
    found = plan(actor, entries, source, Rules(**rules))
    carry_out(actor, found, count)
    return found


def refused(
    actor: Actor, entries: list[Entry], source: str = SOURCE, count: int | None = None, **rules: bool
) -> Refused:
    """The refusal. The rows are as they were."""
    before = list(Scheduler.objects.order_by("pk").values())
    with pytest.raises(Refused) as found:
        applied(actor, entries, source, count, **rules)
    assert list(Scheduler.objects.order_by("pk").values()) == before
    return found.value


def row_of(name: str) -> Scheduler:
    return Scheduler.objects.get(name=name)
