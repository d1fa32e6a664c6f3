"""Checks the settings and the age of the time zone data."""

from __future__ import annotations

import zoneinfo
from collections.abc import Iterator
from datetime import datetime
from importlib import metadata
from pathlib import Path

from django.core.checks import Error, run_checks

from scheduling import conf
from scheduling.monitoring.findings.finding import Finding, counted, fail, ok, warn

ZONES_OLD_AFTER_YEARS = 2
"""Time zone data older than this gets a warning, because some countries change their clock rules every year."""


def settings() -> Iterator[Finding]:
    """The results of the app's Django system checks, as findings."""
    messages = run_checks(tags=["scheduling", "scheduling_handlers"])
    for message in messages:
        level = fail if isinstance(message, Error) else warn
        yield level("settings", message.msg, message.hint or "Correct it in the environment and start again.")
    if not messages:
        used = conf.get_conf()
        retries = counted(used.retry.max_retries, "retry", "retries")
        facts = f"lease {used.lease_seconds} s, grace {used.grace_seconds} s, time zone {used.timezone}"
        yield ok("settings", f"All in bounds: {retries}, {facts}.")


def zones(now: datetime) -> Iterator[Finding]:
    """A finding about the source, version and age of the time zone data that schedules use."""
    source, version = zone_data()
    year = version[:4]
    if not source:
        yield fail("time zones", "No time zone data is installed.", "pip install tzdata")
    elif not year.isdecimal():
        advice = "Install the tzdata package of Python or system."
        yield warn("time zones", f"Data of unknown version from {source}.", advice)
    elif now.year - int(year) >= ZONES_OLD_AFTER_YEARS:
        seen = f"tzdata {version} from {source} is {now.year - int(year)} years old."
        advice = "Bring it up to date (pip install --upgrade tzdata, or the system's package) in every container."
        yield warn("time zones", seen, advice)
    else:
        yield ok("time zones", f"tzdata {version} from {source}.")


def zone_data() -> tuple[str, str]:
    """The source and version of the time zone data. An unknown value is an empty string.

    Python's zoneinfo prefers the system's files to the tzdata package, even if the system's files are older.
    """
    for folder in map(Path, zoneinfo.TZPATH):
        if (folder / "Europe").is_dir():
            return str(folder), _system_version(folder)
    try:
        return "the tzdata package", metadata.version("tzdata")
    except metadata.PackageNotFoundError:
        return "", ""


def _system_version(folder: Path) -> str:
    # A system has one of these files. +VERSION contains only the version; tzdata.zi begins with "# version 2025b".
    for name, prefix in (("+VERSION", ""), ("tzdata.zi", "# version ")):
        try:
            with (folder / name).open() as file:
                line = file.readline().strip()
        except OSError:
            continue
        if line.startswith(prefix):
            return line.removeprefix(prefix)
    return ""
