"""What the environment says: settings in bounds, and how old the time zone data is."""

from __future__ import annotations

import zoneinfo
from collections.abc import Iterator
from datetime import datetime
from importlib import metadata
from pathlib import Path

from django.core.checks import Error, run_checks

from scheduling import conf
from scheduling.doctor.finding import Finding, counted, fail, ok, warn

ZONES_OLD_AFTER_YEARS = 2
"""Governments change clocks a few times a year; data this old is wrong somewhere."""


def settings() -> Iterator[Finding]:
    """The app's own system checks, each as a finding."""
    messages = run_checks(tags=["scheduling"])
    for message in messages:
        level = fail if isinstance(message, Error) else warn
        yield level("settings", message.msg, message.hint or "Correct it in the environment and start again.")
    if not messages:
        used = conf.get_conf()
        yield ok(
            "settings",
            f"All in bounds: {counted(used.retry.max_retries, 'retry', 'retries')}, lease {used.lease_seconds} s, "
            f"grace {used.grace_seconds} s, time zone {used.timezone}.",
        )


def zones(now: datetime) -> Iterator[Finding]:
    """Which time zone data decides when schedules fire."""
    source, version = zone_data()
    year = version[:4]
    if not source:
        yield fail("time zones", "No time zone data is installed.", "pip install tzdata")
    elif not year.isdecimal():
        yield warn(
            "time zones", f"Data of unknown version from {source}.", "Install the tzdata package of Python or system."
        )
    elif now.year - int(year) >= ZONES_OLD_AFTER_YEARS:
        yield warn(
            "time zones",
            f"tzdata {version} from {source} is {now.year - int(year)} years old.",
            "Bring it up to date (pip install --upgrade tzdata, or the system's package) in every container.",
        )
    else:
        yield ok("time zones", f"tzdata {version} from {source}.")


def zone_data() -> tuple[str, str]:
    """Where zones are read from and the version of that data; empty where unknown.

    zoneinfo takes the system's files before the package, so an old system wins over a new package.
    """
    for folder in map(Path, zoneinfo.TZPATH):
        if (folder / "Europe").is_dir():
            return str(folder), _system_version(folder)
    try:
        return "the tzdata package", metadata.version("tzdata")
    except metadata.PackageNotFoundError:
        return "", ""


def _system_version(folder: Path) -> str:
    # Distributions keep one of the two; the second begins with "# version 2025b".
    for name, prefix in (("+VERSION", ""), ("tzdata.zi", "# version ")):
        try:
            with (folder / name).open() as file:
                line = file.readline().strip()
        except OSError:
            continue
        if line.startswith(prefix):
            return line.removeprefix(prefix)
    return ""
