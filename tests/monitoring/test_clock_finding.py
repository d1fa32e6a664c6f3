"""The finding about processes whose host has a wrong clock."""

from __future__ import annotations

from typing import Any

import pytest
from django.utils import timezone as clock

from scheduling.models.process import CLOCK_AHEAD
from scheduling.monitoring.findings import processes
from scheduling.monitoring.findings.finding import Finding, Level
from scheduling.monitoring.findings.present import Present
from tests.factories import ProcessFactory

pytestmark = pytest.mark.django_db


def clocks() -> list[Finding]:
    return [finding for finding in processes.examine(Present(clock.now())) if finding.check == "clocks"]


@pytest.mark.parametrize(
    ("ahead", "level", "about"),
    [(2.5, Level.WARN, "2 s ahead of the database"), (-21600.0, Level.FAIL, "6 h behind the database")],
)
def test_a_process_with_a_wrong_clock_is_named(ahead: float, level: Level, about: str) -> None:
    ProcessFactory(info={CLOCK_AHEAD: 0.3})
    wrong = ProcessFactory(info={CLOCK_AHEAD: ahead})
    ProcessFactory(silent=True, info={CLOCK_AHEAD: 99.0})
    (finding,) = clocks()
    assert finding.level is level
    assert [(wrong.container_id in row.name, row.about) for row in finding.rows] == [(True, about)]


@pytest.mark.parametrize("info", [{}, [], "x", None, {CLOCK_AHEAD: "9"}, {CLOCK_AHEAD: 10**400}, {CLOCK_AHEAD: [9]}])
def test_a_value_that_is_no_time_is_ignored(info: Any) -> None:
    row = ProcessFactory()
    row.info = info
    assert row.clock_ahead == 0.0
