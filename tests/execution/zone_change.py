"""Lets a producer start with other zone data (tzdata)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime

import pytest

from scheduling.execution import zone_plan
from scheduling.processes.zone_files import OwnZoneData
from scheduling.producer.zone_watch import ZoneWatch
from tests.zone_loader import loaded_from

OLD, NEW = OwnZoneData("2026a", "old"), OwnZoneData("2026b", "new")


@contextmanager
def data(own: OwnZoneData, zones: Mapping[str, str] | None = None) -> Iterator[None]:
    """Inside this context, a producer has this data.

    Args:
        zones: maps the name of a zone to the name of the zone whose data it has.
    """
    with loaded_from(zones or {}), pytest.MonkeyPatch.context() as patch:
        patch.setattr(zone_plan, "own_zone_data", lambda: own)
        yield


def producer(now: datetime) -> None:
    """The first turns of a producer that starts, and those of the next minutes."""
    watch = ZoneWatch()
    for second in range(0, 600, 30):
        watch.turn(second, now)
