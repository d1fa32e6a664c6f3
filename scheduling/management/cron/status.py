"""`cron status`: the installation at a glance."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Mapping
from typing import Any

from django.utils import timezone as clock
from django.utils.translation import gettext as _
from django.utils.translation import override

from scheduling.management.cron.console import Console
from scheduling.management.cron.exit_codes import Exit
from scheduling.management.cron.table import Cell, toned
from scheduling.management.quiet_log import quiet_log
from scheduling.models import Process
from scheduling.models.counts import count
from scheduling.models.newest import oldest_failure
from scheduling.models.plan import OVERDUE_AFTER
from scheduling.monitoring.doctor.examine import AREAS, examine
from scheduling.monitoring.doctor.report import Report
from scheduling.monitoring.findings.finding import Level, worst
from scheduling.operations.actor import Actor
from scheduling.operations.times import relative_time

HELP = "Tells what works and what is wrong. Exit code 1 if a finding is a failure."

VIEW = "scheduling.view_dashboard"
LOOKED_AT = [area for area in AREAS if area not in ("settings", "database")]
"""`manage.py doctor` looks at the settings and the database, too."""


def add_arguments(parser: ArgumentParser) -> None:
    """Only those that every verb has."""


def run(console: Console, options: Mapping[str, Any]) -> int:
    """Print the numbers, then the findings that an operator should know."""
    actor, now = console.actor(), clock.now()
    actor.must(VIEW)
    late = count(actor.visible.schedules().filter(status=True, next_run_at__lt=now - OVERDUE_AFTER))
    failed, oldest = count(actor.visible.failures()), oldest_failure(actor.visible)
    kinds = {kind: Process.objects.alive(now, kind).count() for kind in (Process.Kind.PRODUCER, Process.Kind.CONSUMER)}
    producers, consumers = kinds.values()
    report = _findings(actor, now)
    level = worst(finding for _area, finding in report)
    code = Exit.NOT_DONE if level is Level.FAIL else Exit.DONE
    broker = worst(finding for area, finding in report if area == "broker")
    if console.as_json:
        findings = [
            {"area": area, "check": one.check, "level": str(one.level), "seen": one.in_full, "advice": one.advice}
            for area, one in report
        ]
        console.json(
            "status", level=str(level), producers=producers, consumers=consumers, broker=str(broker),
            failed=failed.number, failed_is_cut=failed.capped,
            oldest_failure=None if oldest is None else oldest.isoformat(), late=late.number, late_is_cut=late.capped,
            findings=findings,
        )  # fmt: skip
        return code
    since = "" if oldest is None else _(", the oldest %(when)s") % {"when": relative_time(oldest, now)}
    console.facts([
        (_("producers alive"), _number(producers)),
        (_("consumers alive"), _number(consumers)),
        (_("broker"), toned(str(broker))),
        (_("failed inbox"), f"{failed}{since}"),
        (_("late schedules"), Cell(late, "bad" if late else "")),
    ])  # fmt: skip
    for area, one in report:
        if one.level is not Level.OK:
            console.say()
            console.say(f"{str(one.level).upper()} {area}: {one.in_full}", "bad" if one.level is Level.FAIL else "warn")
            if one.advice:
                console.say(f"  -> {one.advice}")
    return code


def _number(number: int) -> Cell:
    return Cell(number, "" if number else "bad")


def _findings(actor: Actor, now: Any) -> Report:
    # The transport would log the same errors that the findings report. Scripts compare findings, so their language does
    # not change.
    with quiet_log(), override(None):
        return examine(now, LOOKED_AT, actor.visible)
