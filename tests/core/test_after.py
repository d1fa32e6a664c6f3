"""The rule of schedules that wait for another one, by tables and against a slow model that shares no code with it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduling.core.after import (
    FIRST_LOOK,
    LAST_LOOK,
    LONGEST_CHAIN,
    Late,
    Predecessor,
    Run,
    Span,
    Start,
    TooLate,
    Wait,
    chain,
    decide,
    is_circle,
    look_again,
    span_start,
    waits_since,
)
from scheduling.core.cron import ZoneError, parse
from scheduling.core.lifecycle import OPEN_STATES, State
from scheduling.core.skip_reasons import SkipReason, is_on_purpose, kind_of, predecessor_late
from scheduling.core.zones import zone
from tests.support import NOON, examples

HOUR, MINUTE = timedelta(hours=1), timedelta(minutes=1)
MIDNIGHT = NOON - 12 * HOUR
AFTER, LATEST = MIDNIGHT - timedelta(microseconds=1), NOON + 12 * HOUR


def run(at: float, state: str = "succeeded", number: int = 1, skip: SkipReason | None = None, **values: Any) -> Run:
    """Return an execution that was due so many hours before noon."""
    instant = NOON - at * HOUR
    given = {"until": instant, "is_occurrence": True, "finished_at": instant + MINUTE} | values
    return Run(number, instant, state=State(state), skip=skip, **given)


def said(*runs: Run, planned: float | None = None, now: datetime = NOON, late: Late = Late.SKIP, **known: Any) -> str:
    at = None if planned is None else NOON - planned * HOUR
    found = decide(NOON, AFTER, NOON, LATEST, late, Predecessor(runs, at, **known), now)
    return "start" if isinstance(found, Start) else found.what


WAITS = "is due and has not been claimed yet"


@pytest.mark.parametrize(
    ("found", "wanted"),
    [
        (said(), "start"),
        (said(planned=13), "start"),  # it was due yesterday
        (said(planned=12), WAITS),  # midnight belongs to the day
        (said(planned=0), WAITS),  # due at the same instant
        (said(planned=-1), "start"),  # due later on the same day
        (said(run(2)), "start"),
        (said(run(2), planned=2), "start"),
        (said(run(2), planned=1), WAITS),  # the last one counts
        (said(run(2, "failed"), run(1, number=2)), "start"),
        (said(run(2), run(1, "failed", 2)), "has failed as execution 2"),
        (said(run(2, "running")), "is running as execution 1"),
        (said(run(2, "retrying")), "waits for its next attempt as execution 1"),
        (said(run(2, "queued")), "waits to start as execution 1"),
        (said(run(2, "blocked")), "waits to start as execution 1"),
        (said(run(2, "cancelled")), "was cancelled as execution 1"),
        (said(run(2, "discarded")), "failed and was discarded as execution 1"),
        (said(run(2, "failed"), run(1, number=2, is_occurrence=False)), "start"),  # run by hand since
        (said(run(2, "failed"), run(3, number=2, is_occurrence=False)), "has failed as execution 1"),
        (said(run(2, "failed"), run(1, "running", 2, is_occurrence=False)), "is running as execution 2"),
        (said(run(2, "failed"), run(-1, number=2)), "start"),  # the next occurrence has succeeded meanwhile
        (said(run(13)), "start"),  # nothing was due today
        (said(run(1, is_occurrence=False)), "start"),
        (said(run(1, "failed", is_occurrence=False)), "start"),  # a run by hand is nothing to wait for
        (said(run(2, "skipped", skip=SkipReason.NOT_NEEDED)), "start"),
        (said(run(2, "skipped", skip=SkipReason.PAUSED)), "was skipped, as execution 1 says"),
        (said(run(2, "skipped", skip=SkipReason.NO_PRODUCER)), "was skipped, as execution 1 says"),
        (said(run(2, "skipped", skip=SkipReason.PREDECESSOR)), "was skipped, as execution 1 says"),
        (said(run(2, "skipped", skip="excluded")), "start"),  # type: ignore[arg-type]
        (said(run(2, "skipped", 2, skip="excluded"), run(3, "failed")), "has failed as execution 1"),  # type: ignore[arg-type]
        # Left out, because the run of yesterday was not over.
        (said(run(2, "skipped", 2, skip=SkipReason.OVERLAP), run(26, "running", finished_at=None)),
         "was skipped, as execution 2 says"),
        (said(run(2, "skipped", 2, skip=SkipReason.OVERLAP), run(26, finished_at=NOON - HOUR)), "start"),
        (said(run(2, "skipped", 2, skip=SkipReason.OVERLAP), run(26, finished_at=NOON - 3 * HOUR)),
         "was skipped, as execution 2 says"),
        # One skipped execution counts all that were left out.
        (said(run(3, "skipped", 2, skip=SkipReason.OVERLAP, until=NOON), run(26, finished_at=NOON), planned=1),
         "start"),
        # Such a row does not count what has an execution of its own, and what is not on record yet.
        (said(run(3, "skipped", 2, skip=SkipReason.OVERLAP, until=NOON), run(1, "failed", 3),
              run(26, finished_at=NOON)),
         "has failed as execution 3"),
        (said(run(3, "skipped", 2, skip=SkipReason.EXCLUDED, until=NOON), planned=1), "start"),
        (said(run(3, "skipped", 2, skip=SkipReason.EXCLUDED, until=NOON), planned=1, pending=NOON - HOUR), WAITS),
        (said(run(3, "skipped", 2, skip=SkipReason.EXCLUDED, until=NOON), run(0, "running", 3), planned=0),
         "is running as execution 3"),
        (said(planned=2, paused=True), "fell into a pause"),
        (said(run(2), planned=2, paused=True), "start"),
        (said(problem="no zone."), "cannot be judged: no zone"),
        (said(run(2), problem="no zone."), "start"),
        (said(run(2, "failed"), problem="no zone."), "has failed as execution 1"),
    ],
)  # fmt: skip
def test_an_occurrence_starts_when_the_last_one_of_the_span_has_succeeded(found: str, wanted: str) -> None:
    assert found == wanted


@pytest.mark.parametrize("late", Late)
def test_at_the_latest_time_the_policy_decides(late: Late) -> None:
    known = Predecessor([run(2, "failed")])
    found = decide(NOON, AFTER, NOON, LATEST, late, known, LATEST - MINUTE)
    assert isinstance(found, Wait)
    assert (found.awaited, found.look_at) == (NOON - 2 * HOUR, LATEST)
    ended = decide(NOON, AFTER, NOON, LATEST, late, known, LATEST)
    assert ended == TooLate(late, NOON - 2 * HOUR, "has failed as execution 1")
    assert decide(NOON, AFTER, NOON, LATEST, late, Predecessor([run(2)]), LATEST + HOUR) == Start()


def test_it_waits_since_it_could_first_have_started() -> None:
    assert waits_since(NOON, None, NOON) == NOON
    assert waits_since(NOON, NOON + HOUR, NOON + HOUR) == NOON + HOUR  # spread or held
    assert waits_since(NOON, None, NOON + 2 * HOUR) == NOON + 2 * HOUR  # claimed late
    assert waits_since(NOON, NOON + HOUR, NOON + 2 * HOUR) == NOON + 2 * HOUR
    assert waits_since(NOON, NOON + HOUR, NOON) == NOON + HOUR
    found = decide(NOON, AFTER, LATEST, LATEST + HOUR, Late.SKIP, Predecessor([run(2, "failed")]), LATEST)
    assert isinstance(found, Wait)
    assert found.look_at == LATEST + FIRST_LOOK


def test_it_is_looked_at_more_rarely_the_longer_it_waits() -> None:
    times = [look_again(NOON, NOON + hours * HOUR) - NOON - hours * HOUR for hours in (0, 0.5, 1, 24)]
    assert times == [FIRST_LOOK, timedelta(seconds=90), timedelta(minutes=3), LAST_LOOK]


def instant(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC)


@pytest.mark.parametrize(
    ("due", "tz", "start"),
    [
        ("2026-03-10T12:00+00:00", "UTC", "2026-03-10T00:00+00:00"),
        ("2026-03-10T00:00+00:00", "UTC", "2026-03-10T00:00+00:00"),
        ("2026-03-10T23:30+00:00", "Europe/Madrid", "2026-03-11T00:00+01:00"),
        ("2026-03-29T10:00+00:00", "Europe/Madrid", "2026-03-29T00:00+01:00"),
        ("2026-09-06T12:00+00:00", "America/Santiago", "2026-09-06T01:00-03:00"),  # the clocks skip midnight
        ("2026-10-25T12:00+00:00", "Atlantic/Azores", "2026-10-25T00:00+00:00"),  # the clocks show midnight twice
    ],
)
def test_a_day_begins_at_midnight_in_the_zone_of_the_schedule(due: str, tz: str, start: str) -> None:
    assert span_start(Span.DAY, instant(due), tz, None) == instant(start) - timedelta(microseconds=1)


def test_the_span_since_the_occurrence_before_begins_after_it() -> None:
    assert span_start(Span.PREVIOUS, NOON, "UTC", parse("0 */6 * * *")) == NOON - 6 * HOUR
    assert span_start(Span.PREVIOUS, NOON, "UTC", parse("0 12 29 2 *")) == datetime(2024, 2, 29, 12, tzinfo=UTC)
    assert span_start(Span.PREVIOUS, NOON, "UTC", None) < NOON - timedelta(days=2_900)
    with pytest.raises(ZoneError):
        span_start(Span.DAY, NOON, "Nowhere/Atlantis", None)
    with pytest.raises(ValueError, match="time zone"):
        span_start(Span.DAY, NOON.replace(tzinfo=None), "UTC", None)


def test_a_chain_is_bounded_and_a_circle_is_found() -> None:
    edges = {1: 2, 2: 3, 3: 1, 4: 4, 5: 6}
    assert chain(1, 2, edges.get) == [1, 2, 3, 1]
    assert chain(9, 1, edges.get) == [9, 1, 2, 3, 1]  # a circle that it would wait for
    assert is_circle(chain(4, 4, edges.get))
    assert chain(0, 5, edges.get) == [0, 5, 6]
    assert not is_circle(chain(0, 5, edges.get))
    asked: list[int] = []

    def endless(pk: int) -> int:
        asked.append(pk)
        return pk + 1

    assert len(chain(1, 2, endless)) == LONGEST_CHAIN + 1
    assert len(asked) <= LONGEST_CHAIN


def test_the_sentence_of_a_late_occurrence_has_its_own_kind() -> None:
    text = predecessor_late(NOON, "“Load” (schedule 12): its run has failed", zone("Europe/Madrid"))
    assert (
        text
        == "Not started in time: until 2026-03-10 13:00 CET it waited for “Load” (schedule 12): its run has failed."
    )
    assert kind_of(text) is SkipReason.PREDECESSOR
    assert not is_on_purpose(text)


# --- the model: a day has 12 instants

TICKS = 12
KINDS = ("succeeded", "failed", "running", "cancelled", "not needed", "overlap", "calendar", "pause")
events = st.lists(
    st.tuples(st.integers(-3, TICKS + 3), st.sampled_from(KINDS), st.booleans(), st.integers(0, 6)), max_size=6
)
Event = tuple[int, str, bool, int]


def may_start(day: list[Event], due: int, planned: int | None) -> bool:
    """Whether an occurrence of the instant `due` may start: it walks backwards through the day, instant by instant."""
    for tick in range(due, -1, -1):
        here = [kind for at, kind, is_occurrence, _took in day if at == tick and is_occurrence]
        if "calendar" in here or (not here and planned != tick):
            continue
        good = {"succeeded", "not needed"}
        if any(at >= tick and kind in good for at, kind, _occurrence, _took in day):
            return True
        earlier = any(at + took >= tick and kind in good for at, kind, _occurrence, took in day)
        return "overlap" in here and earlier
    return True


@examples(300)
@given(events, st.integers(0, TICKS), st.none() | st.integers(-2, TICKS + 2))
def test_the_rule_agrees_with_a_slow_model(found: list[Event], due: int, planned: int | None) -> None:
    # An occurrence is on record once. Runs by hand have no skip reason of the schedule.
    day = list(
        {(at, is_occurrence): (at, kind, is_occurrence, took) for at, kind, is_occurrence, took in found}.values()
    )
    day = [one for one in day if one[2] or one[1] in ("succeeded", "failed", "running", "not needed")]
    skips = {"not needed": SkipReason.NOT_NEEDED, "overlap": SkipReason.OVERLAP, "pause": SkipReason.PAUSED}
    runs = [
        Run(
            number, MIDNIGHT + at * HOUR, MIDNIGHT + at * HOUR,
            State(kind) if kind in set(State) else State.SKIPPED, is_occurrence,
            skips.get(kind, "excluded" if kind == "calendar" else None),  # type: ignore[arg-type]
            None if kind == "running" else MIDNIGHT + (at + took) * HOUR,
        )
        for number, (at, kind, is_occurrence, took) in enumerate(day, 1)
    ]  # fmt: skip
    instant = None if planned is None else MIDNIGHT + planned * HOUR
    known = Predecessor(runs, instant)
    end = MIDNIGHT + due * HOUR
    decided = decide(end, AFTER, end, end + 24 * HOUR, Late.FAIL, known, end)
    assert isinstance(decided, Start) is may_start(day, due, planned)
    if isinstance(decided, Wait):
        assert decided.what
        assert end < decided.look_at <= end + 24 * HOUR
        assert isinstance(decide(end, AFTER, end, end + 24 * HOUR, Late.FAIL, known, end + 24 * HOUR), TooLate)


def test_each_open_state_is_said_in_words() -> None:
    assert {said(run(2, state.value)).rsplit(" as ", 1)[0] for state in OPEN_STATES} == {
        "is running", "waits for its next attempt", "waits to start",
    }  # fmt: skip
