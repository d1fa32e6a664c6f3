"""Formats the findings of all areas, as text for people or as JSON for scripts."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator

from scheduling.monitoring.findings.finding import Finding, Level, counted, worst
from scheduling.operations.shapes import VERSION

Report = list[tuple[str, Finding]]
"""Pairs of an area's name and a finding, in the order of the checks."""

Paint = Callable[[Level, str], str]


def plain(report: Report, paint: Paint) -> Iterator[str]:
    """The lines to print: a heading for each area, one or two lines for each finding, and a summary at the end."""
    former = ""
    for area, finding in report:
        if area != former:
            yield area.capitalize()
            former = area
        yield f"  {paint(finding.level, finding.level.upper().ljust(4))}  {finding.check.ljust(12)}  {finding.in_full}"
        if finding.advice:
            yield f"{' ' * 22}-> {finding.advice}"
    yield paint(worst(finding for _, finding in report), summary(report))


def summary(report: Report) -> str:
    """The number of findings of each level, such as `21 fine, 1 warning, 0 failures.`"""
    levels = Counter(finding.level for _, finding in report)
    warnings, failures = counted(levels[Level.WARN], "warning"), counted(levels[Level.FAIL], "failure")
    return f"{levels[Level.OK]} fine, {warnings}, {failures}."


def as_json(report: Report) -> str:
    """One JSON object with the worst level and all findings. Every finding contains the name of its area."""
    names = ("area", "check", "level", "seen", "advice")
    rows = [(area, finding.check, finding.level, finding.in_full, finding.advice) for area, finding in report]
    findings = [dict(zip(names, row, strict=True)) for row in rows]
    level = worst(finding for _, finding in report)
    document = {"version": VERSION, "kind": "doctor", "level": level, "findings": findings}
    return json.dumps(document, indent=2, ensure_ascii=False)
