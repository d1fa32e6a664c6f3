"""Runs the checks of every area in order. If a check raises an exception, the other areas are still checked."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from datetime import datetime
from itertools import chain

from django.db import DatabaseError

from scheduling import conf
from scheduling.models.visibility import EVERYTHING, Visibility
from scheduling.monitoring.doctor import broker, database, environment
from scheduling.monitoring.doctor.report import Report
from scheduling.monitoring.findings import areas, targets
from scheduling.monitoring.findings.finding import Finding, fail, warn, words
from scheduling.monitoring.findings.present import Present

_READS_ROWS: dict[str, Callable[[Present], Iterable[Finding]]] = {
    **areas.AREAS,
    "schedules": lambda present: chain(areas.AREAS["schedules"](present), targets.unused()),
}

AREAS = ("settings", "database", "broker", *_READS_ROWS)


def examine(now: datetime, only: Collection[str] = AREAS, visible: Visibility = EVERYTHING) -> Report:
    """Run the checks of the areas in `only`. An exception in a check is reported as a finding.

    Args:
        visible: whose rows count.
    """
    report: Report = []

    def add(area: str, findings: Iterable[Finding]) -> None:
        if area in only:
            report.extend((area, finding) for finding in _guarded(findings))

    add("settings", environment.settings())
    add("settings", environment.zones(now))
    with database.impatient() as connection:
        obstacle = database.unreachable(connection) or database.unmigrated(connection)
        add("database", [obstacle] if obstacle else database.examine(connection))
        if conf.problems():
            for area in ("broker", *_READS_ROWS):
                add(area, [warn("skipped", "Not looked at: the settings cannot be used.", "")])
            return report
        add("broker", broker.examine(now, rows=obstacle is None))
        present = Present(now, visible)
        for area, look in _READS_ROWS.items():
            away = [warn("skipped", "Not looked at: the database cannot be read.", "")]
            add(area, away if obstacle else look(present))
    return report


def _guarded(findings: Iterable[Finding]) -> Iterator[Finding]:
    """Turn an exception in an area into a finding, so that the other areas are still checked."""
    try:
        yield from findings
    except DatabaseError as error:
        yield fail("rows", f"The database refused a question: {words(error)}", "See its log.")
    except Exception as error:
        yield fail("doctor", f"{type(error).__name__}: {error}", "This is a defect of the doctor: please report it.")
