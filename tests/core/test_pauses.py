"""Which runs do not start while a handler, a queue or the site is paused."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduling.core.pauses import LONGEST_WAIT, SPREAD_SECONDS, Scope, WorkPause, pause_of
from tests.support import NOON

SITE = WorkPause(Scope.SITE, "", "", "We move", "ann")
QUEUE = WorkPause(Scope.QUEUE, "", "mail", "The mail server is full", "")
HANDLER = WorkPause(Scope.HANDLER, "worker", "sync", "It deletes too much", "bob", NOON + timedelta(minutes=5))


@pytest.mark.parametrize(
    ("type_", "handler", "queue", "stopping"),
    [
        ("worker", "sync", "main", [SITE, HANDLER]),
        ("report", "sync", "main", [SITE]),
        ("worker", "other", "mail", [SITE, QUEUE]),
        ("worker", "sync", "mail", [SITE, QUEUE, HANDLER]),
        ("worker", "", "", [SITE]),
    ],
)
def test_a_pause_stops_its_handler_its_queue_or_everything(
    type_: str, handler: str, queue: str, stopping: list[WorkPause]
) -> None:
    every = [HANDLER, QUEUE, SITE]
    assert [each for each in (SITE, QUEUE, HANDLER) if each.stops(type_, handler, queue)] == stopping
    assert pause_of(every, type_, handler, queue, NOON) == stopping[0], "the widest one is named"


def test_a_pause_ends_by_itself() -> None:
    end = HANDLER.until
    assert end is not None
    assert pause_of([HANDLER], "worker", "sync", "main", end - timedelta(microseconds=1)) == HANDLER
    assert pause_of([HANDLER], "worker", "sync", "main", end) is None


@given(number=st.integers(min_value=0, max_value=2**63), seconds=st.integers(min_value=-5, max_value=100_000))
def test_a_run_is_offered_again_at_the_end_of_the_pause_or_within_an_hour(number: int, seconds: int) -> None:
    ends = WorkPause(Scope.SITE, "", "", "r", "", NOON + timedelta(seconds=seconds))
    assert ends.offered_at(NOON, number) <= NOON + timedelta(seconds=seconds)
    assert timedelta(0) <= NOON + LONGEST_WAIT - SITE.offered_at(NOON, number) < timedelta(seconds=SPREAD_SECONDS)


def test_the_sentence_names_what_is_paused_by_whom_until_when_and_why() -> None:
    assert SITE.sentence() == "Everything is paused by ann: We move."
    assert QUEUE.sentence() == "The queue 'mail' is paused: The mail server is full."
    assert (
        HANDLER.sentence() == "The worker 'sync' is paused by bob until 2026-03-10 12:05:00 UTC: It deletes too much."
    )
