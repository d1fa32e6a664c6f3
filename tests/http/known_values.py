"""Gives generated requests the ids, names and words that the installation has, so that they reach more than a 404."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

from schemathesis import Case, GenerationMode
from schemathesis.core.parameters import ParameterLocation

from tests.http.team_rows import Teams

Values = Mapping[str, Sequence[Any]]

WORDS: Values = {
    "worker": ("tests.noop", "tests.typed", "tests.fail"),
    "controller": ("tests.tokens", "tests.rows"),
    "name": ("tests.noop", "tests.typed", "tests.rows"),
    "group": ("team", "other team", ""),
    "user": ("viewer", "editor"),
    "schedule": ("0 8 * * *", "*/5 * * * *", "@daily", "0 0 30 2 *", ""),
    "timezone": ("Europe/Madrid", "UTC", "", "Nowhere/Atlantis"),
    "date_time": ("2030-03-10T12:00", "2030-03-31T02:30", "2030-03-10T12:00:00+02:00", "0001-01-01T00:00"),
    "at": ("2026-03-10 12:00", "2026-03-29 02:30", "2026-10-25T02:30", "0001-01-01T00:00", "9999-12-31T23:59:59Z"),
    "q": ("total", "param:since_days=1", "id:1", "schedule:named", "error:total", "target:tests", "key:manual", "12"),
    "fingerprint": ("0" * 40, ""),
    "target_name": ("tests.noop", "tests.typed"),
    "error_class": ("ValueError",),
    "params": ({"since_days": 3}, {}, {"since_days": "x"}, {"unknown": 1}),
    "language": ("de", "en", "xx"),
    "queue": ("main", "reports"),
    "priority": ("high", ""),
    "overlap": ("skip", "wait", "replace"),
    "spread_seconds": (600, None),
    "missed_runs": ("all", "none", "latest"),
    "missed_cap": (5, None),
    "active_from": ("2026-03-10T12:00", None),
    "active_until": ("2030-03-31T02:30", "0001-01-01T00:00"),
    "on_excluded": ("hold",),
    "after": ("named", "missing"),
    "after_span": ("previous",),
    "after_late": ("run", "fail"),
    "after_within_seconds": (60, 59, 604_801),
    "reason": ("it is known",),
    "count": (1, 2, 3, 6),
    "all": (True,),
    "dry_run": (True, False),
    "If-Match": ("*", '"0"'),
    "Idempotency-Key": ("again",),
    "since": ("2026-01-01T00:00:00Z", "0001-01-01T00:00:00+14:00"),
    "until": ("9999-12-31T23:59:59-14:00",),
    "failed_before": ("2100-01-01T00:00:00Z", "0001-01-01T00:00:00+14:00"),
}

BODIES: Mapping[str, Mapping[str, Any]] = {
    "POST /cron/schedulers": {"schedule": "0 8 * * *", "worker": "tests.noop"},
    "POST /cron/schedulers/preview": {"schedule": "0 8 * * *", "worker": "tests.noop"},
    "POST /cron/schedulers/{scheduler_id}/backfill": {"from": "2026-03-10", "until": "2026-03-12"},
    "POST /cron/reports/generate": {"controller": "tests.rows"},
    "POST /cron/failed/republish": {"dry_run": False},
    "POST /cron/failed/discard": {"dry_run": False, "reason": "it is known"},
}
"""Bodies that are accepted. Generated values of several targets, for example, mostly contradict each other."""


def known_values(teams: Teams) -> Values:
    """The values by the names of parameters and of values of bodies."""
    schedules = [row.pk for row in (*teams.own.schedules, *teams.own.schedules, *teams.other.schedules)]
    executions = [row.pk for row in (*teams.own.executions, *teams.own.executions, *teams.other.executions)]
    failed = [row.pk for rows in (teams.own, teams.other) for row in rows.executions if row.state == "failed"]
    return WORDS | {
        "scheduler_id": schedules,
        "scheduler": schedules,
        "execution_id": executions,
        "artefact_id": [*teams.own.files, *teams.other.files],
        "after_id": schedules,
        "worker_id": [row.worker_id for row in teams.own.schedules if row.worker_id],
        "report_id": [row.report_id for row in teams.own.schedules if row.report_id],
        "ids": [[pk] for pk in failed] + [failed],
    }


def with_known_values(pick: Random, case: Case, known: Values) -> Case:
    """Replace some values of a case by known ones. What makes a negative case negative stays as it is."""
    parts = (
        (ParameterLocation.PATH, case.path_parameters, 0.85),
        (ParameterLocation.QUERY, case.query, 0.4),
        (ParameterLocation.HEADER, case.headers, 0.3),
        (ParameterLocation.BODY, case.body, 0.5),
    )
    usual = BODIES.get(case.operation.label)
    if usual and case.meta is not None and case.meta.generation.mode.is_positive and pick.random() < 0.3:
        kept = pick.sample(sorted(case.body), min(len(case.body), pick.randrange(3))) if case.body else ()
        case.body = {name: case.body[name] for name in kept} | usual
        if "ids" in known and "failed" in case.operation.label:
            case.body["ids"] = pick.choice(known["ids"])
        return case
    components = case.meta.components if case.meta is not None else {}
    for location, values, share in parts:
        component = components.get(location)
        if not isinstance(values, Mapping) or component is None or component.mode is GenerationMode.NEGATIVE:
            continue
        for name in [name for name in values if name in known]:
            if pick.random() < share and known[name]:
                values[name] = pick.choice(known[name])  # type: ignore[index]
    return case
