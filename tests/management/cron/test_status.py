"""`cron status`, and the JSON of `doctor`, `health` and `cleanup_executions`."""

from __future__ import annotations

import io
import json
import logging
from contextlib import suppress
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Group
from django.core.management import call_command
from django.utils import timezone as clock

from tests.factories import (
    FailedExecutionFactory,
    ProcessFactory,
    SchedulerExecutionFactory,
    SchedulerFactory,
    UserFactory,
    due,
)
from tests.management.cron.calls import cron

pytestmark = pytest.mark.django_db


def test_status_says_what_is_wrong() -> None:
    FailedExecutionFactory(group=Group.objects.create(name="team"))
    down = cron("status")
    assert down.code == 1
    assert "No producer is alive" in down.out
    ProcessFactory(kind="producer")
    ProcessFactory(kind="consumer")
    up = cron("status", "--json")
    assert (up.code, up.json["kind"], up.json["producers"], up.json["consumers"]) == (0, "status", 1, 1)
    assert (up.json["failed"], up.json["broker"], up.json["late"]) == (1, "ok", 0)
    assert set(up.json["findings"][0]) == {"area", "check", "level", "seen", "advice"}
    UserFactory(username="ann", permissions=["scheduling.view_dashboard"])
    UserFactory(username="ben")
    seen = cron("status", "--json", "--as", "ann").json
    (inbox,) = (one for one in seen["findings"] if one["area"] == "inbox")
    assert (seen["failed"], inbox["level"]) == (0, "ok")
    assert cron("status", "--as", "ben").code == 4
    due(SchedulerFactory(), clock.now() - timedelta(hours=1))
    assert cron("status", "--json").json["late"] == 1


def test_the_log_stays_as_silent_as_the_project_has_set_it() -> None:
    logging.disable(logging.INFO)
    try:
        for command in (["cron", "status"], ["doctor", "--only", "inbox"], ["health", "--kind", "producer"]):
            with suppress(SystemExit):
                call_command(*command, stdout=io.StringIO())
            assert logging.root.manager.disable == logging.INFO, command
    finally:
        logging.disable(logging.NOTSET)


def written(*arguments: str) -> Any:
    out = io.StringIO()
    with suppress(SystemExit):
        call_command(*arguments, stdout=out)
    return json.loads(out.getvalue())


def test_other_commands_write_versioned_json() -> None:
    old = clock.now() - timedelta(days=99)
    row = SchedulerExecutionFactory(succeeded=True, executed_at=old, finished_at=old, scheduled_at=old)
    SchedulerExecutionFactory(scheduler=row.scheduler)  # the newest one of a schedule stays
    doctor = written("doctor", "--json", "--only", "inbox")
    assert (doctor["version"], doctor["kind"], doctor["level"]) == (1, "doctor", "ok")
    health = written("health", "--json", "--kind", "producer", "--seconds", "1")
    assert (health["version"], health["kind"], health["healthy"]) == (1, "health", False)
    cleanup = written("cleanup_executions", "--json", "--dry-run")
    assert (cleanup["version"], cleanup["kind"], cleanup["dry_run"], cleanup["executions"]) == (1, "cleanup", True, 1)
    assert sum(cleanup["rules"].values()) == 1
