"""The rule that says why a schedule did or did not run at an instant."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from scheduling.core.cron import parse
from scheduling.core.why_at import Answer, Facts, answer, is_due, neighbours

NOW = datetime(2026, 3, 10, 12, 0, tzinfo=UTC)
HOUR = timedelta(hours=1)

PAST = Facts(
    at=NOW - HOUR, now=NOW, due=True, recorded=False, counted=False, active=True,
    created_at=NOW - 100 * HOUR, planned_at=NOW - 50 * HOUR, next_run_at=NOW + HOUR,
)  # fmt: skip
FUTURE = {"at": NOW + HOUR}


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"recorded": True}, Answer.RECORDED),
        ({"recorded": True, "due": False}, Answer.RECORDED),
        ({"recorded": True, **FUTURE}, Answer.RECORDED),
        ({"counted": True}, Answer.LEFT_OUT),
        ({"counted": True, "due": False}, Answer.NOT_DUE),
        ({"counted": True, "due": False, "at": NOW - 60 * HOUR}, Answer.LEFT_OUT),
        (FUTURE, Answer.WILL_RUN),
        ({**FUTURE, "active": False}, Answer.WILL_BE_LEFT_OUT),
        ({**FUTURE, "due": False}, Answer.NOT_DUE),
        ({"at": NOW - 101 * HOUR}, Answer.NOT_CREATED),
        ({"at": NOW - 60 * HOUR}, Answer.OTHER_TIMES),
        ({"at": NOW - 60 * HOUR, "due": False}, Answer.OTHER_TIMES),
        ({"at": NOW - 60 * HOUR, "planned_at": None}, Answer.NO_RECORD),
        ({"due": False}, Answer.NOT_DUE),
        ({"next_run_at": NOW - HOUR}, Answer.WAITS),
        ({"next_run_at": None, "active": False, "paused_at": NOW - 2 * HOUR}, Answer.PAUSED),
        ({"next_run_at": None, "active": False, "paused_at": None}, Answer.PAUSED),
        ({"next_run_at": None, "active": False, "paused_at": NOW}, Answer.NO_RECORD),
        ({}, Answer.NO_RECORD),
    ],
)
def test_the_answer(changes: dict[str, Any], expected: Answer) -> None:
    assert answer(replace(PAST, **changes)) is expected


def test_due_and_its_neighbours_in_a_zone() -> None:
    cron = parse("0 3 * * *")
    at = datetime(2026, 3, 10, 2, 0, tzinfo=UTC)
    assert is_due(cron, "Europe/Berlin", at)
    assert not is_due(cron, "Europe/Berlin", at + HOUR)
    assert neighbours(cron, "Europe/Berlin", at + HOUR) == (at, at + 24 * HOUR)
    assert neighbours(cron, "Europe/Berlin", at) == (at - 24 * HOUR, at + 24 * HOUR)


def test_neighbours_of_the_rarest_schedule() -> None:
    before, after = neighbours(parse("0 0 29 2 *"), "UTC", NOW)
    assert (before, after) == (datetime(2024, 2, 29, tzinfo=UTC), datetime(2028, 2, 29, tzinfo=UTC))
