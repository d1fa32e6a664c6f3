"""`manage.py audit_occurrences`: holds the executions against what was due by the revisions of the schedules."""

from __future__ import annotations

import json
import sys
from argparse import ArgumentTypeError
from collections import Counter
from datetime import UTC, datetime
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser, no_translations
from django.utils import timezone as clock

from scheduling.conf import get_conf
from scheduling.core.lifecycle import OCCURRENCES
from scheduling.core.occurrence_audit import Fault
from scheduling.core.zones import zone
from scheduling.management.cron.closed_pipe import may_be_cut
from scheduling.models import SchedulerExecution
from scheduling.operations.actor import Actor
from scheduling.operations.occurrence_audit import Audited, audit_schedules
from scheduling.operations.refused import Refused
from scheduling.operations.schedules import find
from scheduling.operations.shapes import VERSION
from scheduling.operations.typed_instants import typed_instants

FOUND = 1
"""The exit code if there is a gap or a double."""

MOST_LISTED = 10_000
"""At most so many faults are listed. All are counted."""

WORDS = {
    Fault.GAP: "gap: it was due, and is not on record",
    Fault.TWICE: "double: several executions have this instant",
    Fault.COUNTED: "double: an execution has this instant, and a skipped execution counts it, too",
    Fault.NOT_DUE: "double: an execution has this instant, but it was not due",
}


class Command(BaseCommand):
    help = (
        "Recomputes from the revisions of the schedules what was due, and holds it against the executions. It names "
        "each gap and each double. Exit code 1 if there is one."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """The range, the schedule and --json."""
        when = "such as '2026-03-29 02:30' in the site's zone, or with an offset"
        parser.add_argument("--from", dest="since", type=_instant, metavar="INSTANT", help=f"due after it, {when}")
        parser.add_argument("--until", type=_instant, metavar="INSTANT", help="due up to it")
        parser.add_argument("--schedule", metavar="SCHEDULE", help="only this one: an id, a name or its beginning")
        parser.add_argument("--json", action="store_true", help="write one JSON document")

    @may_be_cut
    @no_translations  # scripts read the answer, so the language must not change
    def handle(self, *_args: Any, **options: Any) -> None:
        """Print the faults; exit with FOUND if there is one."""
        only = None
        if options["schedule"] is not None:
            try:
                only = [find(Actor(None), options["schedule"]).pk]
            except Refused as refused:
                raise CommandError(refused.said) from None
        report = _Report(self, options["json"])
        for audited in audit_schedules(clock.now(), options["since"], options["until"], only):
            report.add(audited)
        report.end()
        if sum(report.faults.values()):
            sys.exit(FOUND)


class _Report:
    """Writes what was found, schedule by schedule."""

    def __init__(self, command: BaseCommand, as_json: bool) -> None:
        self._command, self._as_json = command, as_json
        self.faults: Counter[Fault] = Counter()
        self._more = 0
        self._listed: list[dict[str, Any]] = []
        self._notes: list[dict[str, Any]] = []
        self._schedules = self._due = self._rows = 0

    def add(self, audited: Audited) -> None:
        """Add one schedule."""
        self._schedules, self._due, self._rows = (
            self._schedules + 1, self._due + audited.due, self._rows + audited.rows
        )  # fmt: skip
        if audited.note:
            known = None if audited.since is None else _text(audited.since)
            note = {"schedule": audited.pk, "name": audited.name, "known_from": known, "note": audited.note}
            if self._as_json:
                self._notes.append(note)
            else:
                self._say(f"{audited.pk} {audited.name}: {audited.note}" + (f" Known from {known}." if known else ""))
        self._more += audited.count - len(audited.faults)
        for fault, instant in audited.faults:
            self.faults[fault] += 1
            if sum(self.faults.values()) > MOST_LISTED:
                self._more += 1
                continue
            line: dict[str, Any] = {
                "schedule": audited.pk,
                "name": audited.name,
                "at": _text(instant),
                "fault": fault.value,
            }
            line["executions"] = [] if fault is Fault.GAP else _executions(audited.pk, instant)
            if self._as_json:
                self._listed.append(line)
            else:
                which = ", ".join(map(str, line["executions"]))
                named = f" (executions {which})" if which else ""
                self._say(f"{audited.pk} {audited.name} at {line['at']}: {WORDS[fault]}{named}")

    def end(self) -> None:
        """Write the counts."""
        gaps = self.faults[Fault.GAP]
        doubles = sum(self.faults.values()) - gaps
        if self._as_json:
            document = {
                "version": VERSION, "kind": "occurrences", "schedules": self._schedules, "due": self._due,
                "executions": self._rows, "gaps": gaps, "doubles": doubles, "not_listed": self._more,
                "faults": self._listed, "notes": self._notes,
            }  # fmt: skip
            self._command.stdout.write(json.dumps(document, indent=2, ensure_ascii=False))
            return
        if self._more:
            self._say(f"{self._more} more are not listed.")
        self._say(
            f"{self._schedules} schedules, {self._due} occurrences due, {self._rows} executions: "
            f"{gaps} gaps, {doubles} doubles."
        )

    def _say(self, text: str) -> None:
        self._command.stdout.write(text)


def _executions(schedule: int, instant: datetime) -> list[int]:
    rows = SchedulerExecution.objects.filter(scheduler=schedule, scheduled_at=instant, trigger__in=OCCURRENCES)
    return list(rows.order_by("pk").values_list("pk", flat=True)[:10])


def _text(instant: datetime) -> str:
    return instant.astimezone(UTC).isoformat().replace("+00:00", "Z")


def _instant(text: str) -> datetime:
    found = typed_instants(text, zone(get_conf().timezone), clock.now())
    if found is None:
        raise ArgumentTypeError(f"{text[:40]!r} is no date and time such as 2026-03-29 02:30")
    return found.instants[0]
