"""Report: findings with their areas, as text for people and as JSON for scripts."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator

from scheduling.doctor.finding import Finding, Level, counted, worst

Report = list[tuple[str, Finding]]
"""Each finding with its area, in the order they were looked at."""

Paint = Callable[[Level, str], str]


def plain(report: Report, paint: Paint) -> Iterator[str]:
    """A line a finding under its area, advice below it, and a last line that sums up."""
    former = ""
    for area, finding in report:
        if area != former:
            yield area.capitalize()
            former = area
        yield f"  {paint(finding.level, finding.level.upper().ljust(4))}  {finding.check.ljust(12)}  {finding.seen}"
        if finding.advice:
            yield f"{' ' * 22}-> {finding.advice}"
    yield paint(worst(finding for _, finding in report), summary(report))


def summary(report: Report) -> str:
    """`21 fine, 1 warning, 0 failures.`"""
    levels = Counter(finding.level for _, finding in report)
    return (
        f"{levels[Level.OK]} fine, {counted(levels[Level.WARN], 'warning')}, {counted(levels[Level.FAIL], 'failure')}."
    )


def as_json(report: Report) -> str:
    """One object: the worst level, and every finding with its area."""
    findings = [
        {"area": area, "check": each.check, "level": each.level.value, "seen": each.seen, "advice": each.advice}
        for area, each in report
    ]
    return json.dumps(
        {"level": worst(each for _, each in report).value, "findings": findings}, indent=2, ensure_ascii=False
    )
