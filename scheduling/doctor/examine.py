"""Examine: every question of every area, in order, whatever one of them runs into."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from datetime import datetime

from django.db import DatabaseError

from scheduling import conf
from scheduling.doctor import broker, database, environment, processes, runs, schedules
from scheduling.doctor.finding import Finding, fail, warn, words
from scheduling.doctor.report import Report

AREAS = ("settings", "database", "broker", "schedules", "processes", "runs")

_READS_ROWS: dict[str, Callable[[datetime], Iterable[Finding]]] = {
    "schedules": schedules.examine,
    "processes": processes.examine,
    "runs": runs.examine,
}


def examine(now: datetime, only: Collection[str] = AREAS) -> Report:
    """Look at the areas in `only`; never raises for what it finds."""
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
        for area, look in _READS_ROWS.items():
            add(area, [warn("skipped", "Not looked at: the database cannot be read.", "")] if obstacle else look(now))
    return report


def _guarded(findings: Iterable[Finding]) -> Iterator[Finding]:
    """An area that breaks off is a finding too; the others go on."""
    try:
        yield from findings
    except DatabaseError as error:
        yield fail("rows", f"The database refused a question: {words(error)}", "See its log.")
    except Exception as error:
        yield fail("doctor", f"{type(error).__name__}: {error}", "This is a defect of the doctor: please report it.")
