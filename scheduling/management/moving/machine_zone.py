"""The time zone of this machine, in which its cron reads the times."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from scheduling.core.zones import zone_names

LOCALTIME = Path("/etc/localtime")
TIMEZONE = Path("/etc/timezone")


def machine_zone() -> str:
    """The IANA name of the zone; empty if the machine does not tell it."""
    found = []
    with suppress(OSError, ValueError):
        found.append(str(LOCALTIME.resolve(strict=True)).partition("zoneinfo/")[2])
    with suppress(OSError, ValueError):
        found.append(TIMEZONE.read_text().strip())
    return next((name for name in found if name in zone_names()), "")
