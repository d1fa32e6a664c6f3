"""Open circuit breakers are findings, and so are those that have closed within the last hour."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone as clock

from scheduling.monitoring.findings import breakers
from scheduling.monitoring.findings.finding import Finding, Level
from scheduling.monitoring.findings.present import Present
from tests.factories import BreakerFactory

pytestmark = pytest.mark.django_db


def found() -> list[Finding]:
    return list(breakers.examine(Present(clock.now())))


def test_an_open_breaker_is_named_with_its_reason() -> None:
    BreakerFactory(name="shop.push")
    BreakerFactory(name="shop.pull", state="half_open", since=None, reason="")
    (finding,) = found()
    assert (finding.check, finding.level) == ("breakers", Level.WARN)
    assert finding.seen == "Circuit breakers keep runs waiting: 2."
    assert [row.name for row in finding.rows] == ["worker shop.push", "worker shop.pull"]
    assert finding.rows[0].about.endswith("8 of 10 runs within 60 s have failed.")
    assert "the depot" not in finding.in_full, "the error may name what not all users may see"


@pytest.mark.parametrize(("minutes", "openings", "said"), [(59, 1, True), (61, 1, False), (5, 0, False)])
def test_a_breaker_that_has_closed_is_named_for_an_hour(minutes: int, openings: int, said: bool) -> None:
    BreakerFactory(closed=True, since=clock.now() - timedelta(minutes=minutes), openings=openings)
    assert [finding.check for finding in found()] == (["closed breakers"] if said else [])
