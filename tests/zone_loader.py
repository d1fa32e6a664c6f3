"""Loads zones with the data of other zones, as if a government had changed their rules."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from zoneinfo import TZPATH, ZoneInfo

import pytest

from scheduling.core import hours, nominal, zones
from scheduling.models import exclusions


@contextmanager
def loaded_from(data: Mapping[str, str]) -> Iterator[None]:
    """Inside this context, zones have other data.

    Args:
        data: maps the name of a zone to the name of the zone whose data it has.
    """

    def load(name: str) -> ZoneInfo:
        if name not in data:
            return ZoneInfo(name)
        file = next(path for folder in TZPATH if (path := Path(folder) / data[name]).is_file())
        with file.open("rb") as opened:
            return ZoneInfo.from_file(opened, key=name)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(zones, "ZoneInfo", load)
        _forget()
        yield
    _forget()


def _forget() -> None:
    """Forget what a new process would not know."""
    zones.zone.cache_clear()
    hours._local_hours.cache_clear()
    nominal._next.cache_clear()
    exclusions.cache.clear()
