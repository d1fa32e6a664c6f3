"""Each skip, wait and hold answers "why": by instant, as a client asks, and on the page of the execution.

Each situation is made as it happens: a producer and a consumer work on real rows. Only the clock is set.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any, NamedTuple

import pytest
from django.db import transaction
from django.test import Client

from scheduling.core import skip_reasons
from scheduling.core.outcome import Failed, Skipped
from scheduling.core.skip_reasons import SkipReason, kind_of, not_needed
from scheduling.core.why_at import Answer
from scheduling.execution.claim import claim_due
from scheduling.execution.run_now import run_now
from scheduling.execution.skip_due import skip_due
from scheduling.models import Scheduler, SchedulerExecution
from scheduling.models.exclusions import cache as calendars
from scheduling.operations.actor import Actor
from scheduling.operations.why import why
from scheduling.testing import travel
from tests.admin.conftest import logged_in
from tests.admin.pages import page_of, text_in
from tests.factories import BreakerFactory, CalendarFactory, PauseFactory, UserFactory, due
from tests.policies.after_world import HOUR, MINUTE, World, edge, last, schedule
from tests.support import NOON

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def fresh_calendars() -> None:
    """Forget the calendars of other tests, which had the same numbers and versions."""
    calendars.clear()


class Situation(NamedTuple):
    """What was made.

    Args:
        row: the schedule that is asked about.
        at: the instant that is asked about.
        now: when it is asked.
        words: what the answer must have: the cause, by its name.
        kind: the kind of the skip; None if it is not skipped.
        pending: the answer, if no execution is on record.
    """

    row: Scheduler
    at: datetime
    now: datetime
    words: tuple[str, ...]
    kind: SkipReason | None = None
    pending: Answer | None = None


MAKERS: list[Callable[[], Situation]] = []


def situation(make: Callable[[], Situation]) -> Callable[[], Situation]:
    MAKERS.append(make)
    return make


def depot(entries: str) -> Any:
    return CalendarFactory(name="Depot", timezone="UTC", entries=entries)


def missed(hours: int, late: timedelta = MINUTE, **columns: Any) -> tuple[Scheduler, datetime]:
    """A schedule that no producer has claimed for some hours until noon, and the instant at which one comes."""
    with travel(NOON - (hours + 1) * HOUR):
        row = schedule(**columns)
        row.refresh_from_db()
    now = NOON + late
    if row.next_nominal_at is None:
        due(row, NOON - hours * HOUR)
    claim_due(now, embedded=True)
    return row, now


# --- What does not run


@situation
def no_producer() -> Situation:
    row, now = missed(3)
    return Situation(row, NOON - 2 * HOUR, now, ("no producer was running",), SkipReason.NO_PRODUCER)


@situation
def too_old() -> Situation:
    row, now = missed(2, 30 * MINUTE, missed_within_seconds=600)
    return Situation(row, NOON, now, ("catch-up window of 10 minutes",), SkipReason.TOO_LATE)


@situation
def not_caught_up() -> Situation:
    row, now = missed(2, 5 * MINUTE, missed_runs="none")
    return Situation(row, NOON - HOUR, now, ("does not catch up",), SkipReason.NOT_CAUGHT_UP)


@situation
def over_the_cap() -> Situation:
    row, now = missed(9, missed_runs="all", missed_cap=2, missed_within_seconds=5 * 3600)
    return Situation(row, NOON - 3 * HOUR, now, ("more were missed than",), SkipReason.OVER_CAP)


@situation
def too_old_beside_those_over_the_cap() -> Situation:
    row, now = missed(9, missed_runs="all", missed_cap=2, missed_within_seconds=5 * 3600)
    return Situation(row, NOON - 7 * HOUR, now, ("catch-up window of 5 hours",), SkipReason.TOO_LATE)


@situation
def excluded() -> Situation:
    row, now = missed(5, calendar=depot("07:30-10:30 stocktaking"))
    return Situation(row, NOON - 3 * HOUR, now, ("stocktaking", "“Depot”"), SkipReason.EXCLUDED)


@situation
def excluded_by_another_entry() -> Situation:
    entries = "07:30-08:30 stocktaking\n08:30-09:30 cleaning\n09:30-10:30 stocktaking\n10:30-11:30 cleaning"
    row, now = missed(5, calendar=depot(entries))
    return Situation(row, NOON - 2 * HOUR, now, ("stocktaking", "“Depot”"), SkipReason.EXCLUDED)


@situation
def missed_between_excluded_ones() -> Situation:
    entries = "07:30-08:30 stocktaking\n10:30-11:30 stocktaking"
    row, now = missed(6, calendar=depot(entries))
    return Situation(row, NOON - 2 * HOUR, now, ("no producer was running",), SkipReason.NO_PRODUCER)


@situation
def among_too_many_to_be_looked_at() -> Situation:
    with travel(NOON - timedelta(days=3)):
        row = schedule(schedule="* * * * *", calendar=depot("13:00-13:30 lunch"))
    claim_due(NOON, embedded=True)
    words = ("no producer was running, or a calendar excluded them",)
    return Situation(row, NOON - timedelta(days=1), NOON, words, SkipReason.NO_PRODUCER)


@situation
def held_with_a_later_one() -> Situation:
    row, now = missed(5, calendar=depot("07:30-11:30 stocktaking"), on_excluded="hold")
    words = ("stocktaking", "“Depot”", "only the one at 2026-03-10 11:00 UTC runs")
    return Situation(row, NOON - 4 * HOUR, now, words, SkipReason.HELD)


@situation
def held_and_edited() -> Situation:
    with travel(NOON - 5 * HOUR):
        row = schedule(calendar=depot("07:30-16:00 stocktaking"), on_excluded="hold")
    with travel(NOON):
        row.status = False
        row.save()
    words = ("stocktaking", "“Depot”", "edited, or paused")
    return Situation(row, NOON - 2 * HOUR, NOON, words, SkipReason.HELD)


@situation
def edited_while_spread() -> Situation:
    with travel(NOON - 7 * HOUR):
        row = schedule(spread_seconds=86_400)
        while row.next_run_at is None or row.next_run_at < NOON + 2 * HOUR:
            row.delete()
            row = schedule(spread_seconds=86_400)
    with travel(NOON):
        row.schedule = "30 * * * *"
        row.save()
    return Situation(row, NOON - 2 * HOUR, NOON, ("the schedule was edited",), SkipReason.OTHER)


@situation
def paused() -> Situation:
    with travel(NOON - 4 * HOUR):
        row = schedule()
        row.status, row.paused_by, row.pause_reason = False, "anna", "the disk is full"
        row.save()
    with travel(NOON - MINUTE):
        row.status = True
        row.save()
    return Situation(row, NOON - 2 * HOUR, NOON, ("Paused by anna", "the disk is full"), SkipReason.PAUSED)


@situation
def paused_too_late() -> Situation:
    row = due(schedule(), NOON)
    Scheduler.objects.filter(pk=row.pk).update(status=False)
    claim_due(NOON + MINUTE, embedded=True)
    return Situation(row, NOON, NOON + MINUTE, ("paused after the run fell due",), SkipReason.PAUSED)


@situation
def not_over() -> Situation:
    row, world = schedule(overlap="skip"), World()
    world.claim(row)
    first = last(row)
    for _ in range(3):
        world.now += HOUR
        world.claim(row)
    words = (f"because execution {first.pk} was not over",)
    return Situation(row, NOON + 2 * HOUR, world.now, words, SkipReason.OVERLAP)


@situation
def a_newer_one_waits() -> Situation:
    row, world = schedule(overlap="wait"), World()
    for _ in range(3):
        world.claim(row)
        world.now += HOUR
    words = (f"when the newer execution {last(row).pk} fell due",)
    return Situation(row, NOON + HOUR, world.now, words, SkipReason.OVERLAP)


@situation
def the_service_runs() -> Situation:
    row, world = schedule(stay_alive=True), World()
    world.claim(row)
    first = last(row)
    world.now += HOUR
    world.claim(row)
    words = (f"the service was running already, as execution {first.pk}",)
    return Situation(row, NOON + HOUR, world.now, words, SkipReason.OVERLAP)


@situation
def expired() -> Situation:
    row, world = schedule(start_within_seconds=600), World()
    world.claim(row)
    world.sweep(11)
    words = ("it had not started 10 minutes after it was due", "in the queue main")
    return Situation(row, NOON, world.now, words, SkipReason.EXPIRED)


@situation
def expired_without_a_producer() -> Situation:
    row, world = due(schedule(start_within_seconds=600), NOON), World(NOON + 20 * MINUTE)
    claim_due(world.now, embedded=True)
    words = ("it had not started 10 minutes after it was due", "until a producer claimed it")
    return Situation(row, NOON, world.now, words, SkipReason.EXPIRED)


@situation
def nothing_to_do() -> Situation:
    row, world = schedule(), World()
    world.claim(row)
    world.start()
    world.end(last(row), Skipped(not_needed("no new orders")))
    return Situation(row, NOON, world.now, ("Left out by its handler: no new orders",), SkipReason.NOT_NEEDED)


@situation
def before_a_restore() -> Situation:
    row = due(schedule(), NOON - 2 * HOUR)
    skip_due(NOON, skip_reasons.RAN_BEFORE_RESTORE, NOON)
    return Situation(row, NOON - HOUR, NOON, ("before the database was restored",), SkipReason.RESTORED)


@situation
def confirmed() -> Situation:
    row = due(schedule(), NOON - 2 * HOUR)
    skip_due(NOON, skip_reasons.CONFIRMED, NOON)
    return Situation(row, NOON - HOUR, NOON, ("the database was confirmed",), SkipReason.CONFIRMED)


@situation
def the_predecessor_is_late() -> Situation:
    (first, row), world = edge(after_within_seconds=600), World()
    world.claim(first, row)
    world.sweep(11)
    words = ("Not started in time", f"“Load data” (schedule {first.pk})", "12:10 UTC")
    return Situation(row, NOON, world.now, words, SkipReason.PREDECESSOR)


# --- What waits


@situation
def waits_for_the_run_before() -> Situation:
    row, world = schedule(overlap="wait"), World()
    world.claim(row)
    world.start()
    first = last(row)
    world.now += HOUR
    world.claim(row)
    return Situation(row, NOON + HOUR, world.now, (f"It waits until execution {first.pk} is over.",))


@situation
def replaces_the_run_before() -> Situation:
    row, world = schedule(overlap="replace"), World()
    world.claim(row)
    world.start()
    first = last(row)
    world.now += HOUR
    world.claim(row)
    return Situation(row, NOON + HOUR, world.now, (f"It replaces execution {first.pk}",))


@situation
def waits_for_the_predecessor() -> Situation:
    (first, row), world = edge(), World()
    world.claim(first)
    world.start()
    world.claim(row)
    words = (f"Waits for “Load data” (schedule {first.pk})", f"is running as execution {last(first).pk}")
    return Situation(row, NOON, world.now, words)


@situation
def waits_for_the_end_of_a_pause() -> Situation:
    row, world = schedule(), World()
    PauseFactory(of_site=True, reason="The database moves", paused_by="anna")
    world.claim(row)
    return Situation(row, NOON, world.now, ("Everything is paused by anna", "The database moves"))


@situation
def waits_for_a_place() -> Situation:
    world, others = World(), [schedule(handler="tests.two_at_once", params={"directory": "."}) for _ in range(3)]
    world.claim(*others)
    world.start()
    row = next(one for one in others if last(one).state == "queued")
    return Situation(row, NOON, world.now, ("It waits for a place", "tests.two_at_once"))


@situation
def waits_for_a_circuit_breaker() -> Situation:
    row, world = schedule(handler="tests.depending", params={"directory": "."}), World()
    BreakerFactory(name="tests.depending", since=NOON - MINUTE, probed_at=NOON)
    world.claim(row)
    world.start()
    return Situation(row, NOON, world.now, ("circuit breaker",))


@situation
def waits_for_a_consumer_and_has_a_deadline() -> Situation:
    row, world = schedule(start_within_seconds=3600), World()
    world.claim(row)
    words = ("in the queue “main” for a free consumer", "It must start by 2026-03-10 13:00:00 UTC")
    return Situation(row, NOON, world.now, words)


@situation
def waits_for_the_broker() -> Situation:
    row = due(schedule(), NOON)
    claim_due(NOON, embedded=False)
    return Situation(row, NOON, NOON, ("waits for the broker to confirm it",))


@situation
def waits_for_its_retry() -> Situation:
    row, world = schedule(max_retries=2), World()
    world.claim(row)
    world.start()
    world.end(last(row), Failed("builtins.ConnectionError", "no route to host"))
    return Situation(row, NOON, world.now, ("Attempt 1 failed", "ConnectionError", "The next attempt is due in"))


# --- What is held, spread, or outside, and what is on no record yet


def not_yet(row: Scheduler, at: datetime, words: tuple[str, ...], answer: Answer, now: datetime = NOON) -> Situation:
    return Situation(row, at, now, words, pending=answer)


@situation
def held() -> Situation:
    with travel(NOON - 2 * HOUR - MINUTE):
        row = schedule(calendar=depot("09:30-15:30 stocktaking"), on_excluded="hold")
    words = ("stocktaking (calendar “Depot”)", "Only the latest run that is held starts, at 2026-03-10 15:30:00 UTC")
    return not_yet(row, NOON - HOUR, words, Answer.HELD)


@situation
def held_and_ran() -> Situation:
    with travel(NOON - 2 * HOUR - MINUTE):
        row = schedule(calendar=depot("09:30-11:30 stocktaking"), on_excluded="hold")
    claim_due(NOON - 30 * MINUTE, embedded=True)
    words = (
        "in the queue “main” for a free consumer",
        "A calendar held it until 2026-03-10 11:30:00 UTC: stocktaking (calendar “Depot”).",
    )
    return Situation(row, NOON - HOUR, NOON - 30 * MINUTE, words)


@situation
def will_be_held_and_gives_way() -> Situation:
    with travel(NOON):
        row = schedule(calendar=depot("13:30-16:00 stocktaking"), on_excluded="hold")
    words = ("It is due then", "stocktaking (calendar “Depot”)", "gives way to the run that is due when the hold ends")
    return not_yet(row, NOON + 2 * HOUR, words, Answer.WILL_RUN)


@situation
def will_be_held_alone() -> Situation:
    with travel(NOON):
        row = schedule(calendar=depot("13:30-14:30 stocktaking"), on_excluded="hold")
    words = ("stocktaking (calendar “Depot”)", "It starts at 2026-03-10 14:30:00 UTC.")
    return not_yet(row, NOON + 2 * HOUR, words, Answer.WILL_RUN)


@situation
def is_held_without_an_end() -> Situation:
    with travel(NOON):
        row = schedule(calendar=depot("every 01-01..12-31 closed"), on_excluded="hold")
    words = ("closed (calendar “Depot”)", "No end of it is known, so it does not run.")
    return not_yet(row, NOON + HOUR, words, Answer.WILL_RUN)


@situation
def will_be_excluded() -> Situation:
    with travel(NOON):
        row = schedule(calendar=depot("13:30-14:30 stocktaking"))
    return not_yet(row, NOON + 2 * HOUR, ("excludes it: stocktaking (calendar “Depot”)",), Answer.WILL_BE_EXCLUDED)


@situation
def is_excluded_and_on_no_record() -> Situation:
    with travel(NOON - 2 * HOUR):
        row = schedule(calendar=depot("10:30-14:30 stocktaking"))
    words = ("excludes it: stocktaking (calendar “Depot”)", "The next run puts it on record.")
    return not_yet(row, NOON - HOUR, words, Answer.EXCLUDED)


@situation
def is_spread() -> Situation:
    with travel(NOON - MINUTE):
        row = schedule(spread_seconds=86_400)
        while row.next_run_at is None or row.next_run_at < NOON + HOUR:
            row.delete()
            row = schedule(spread_seconds=86_400)
    return not_yet(row, NOON, ("its schedule is spread", "It starts at 2026-03-"), Answer.SPREAD, NOON + MINUTE)


@situation
def was_spread_and_ran() -> Situation:
    with travel(NOON - MINUTE):
        row = schedule(spread_seconds=1800)
        while row.next_run_at is None or row.next_run_at < NOON + MINUTE:
            row.delete()
            row = schedule(spread_seconds=1800)
    now = row.next_run_at
    claim_due(now, embedded=True)
    words = ("Its schedule is spread, so it was to start at", f"{now:%H:%M:%S} UTC")
    return Situation(row, NOON, now, words)


@situation
def no_producer_comes() -> Situation:
    row = due(schedule(), NOON)
    words = ("no producer has claimed it yet", "No producer is alive")
    return not_yet(row, NOON, words, Answer.WAITS, NOON + 2 * MINUTE)


@situation
def is_not_active_yet() -> Situation:
    with travel(NOON):
        row = schedule(active_from=NOON + 5 * HOUR)
    words = ("It is not due then: the schedule is active from 2026-03-10 17:00 UTC on.",)
    return not_yet(row, NOON + 2 * HOUR, words, Answer.OUTSIDE)


@situation
def has_ended() -> Situation:
    with travel(NOON - 5 * HOUR):
        row = schedule(active_until=NOON - 3 * HOUR)
    words = ("It was not due then: the schedule was active until 2026-03-10 09:00 UTC.",)
    return not_yet(row, NOON - HOUR, words, Answer.OUTSIDE)


@situation
def is_paused() -> Situation:
    with travel(NOON - 4 * HOUR):
        row = schedule()
        row.status, row.paused_by, row.pause_reason = False, "anna", "the disk is full"
        row.save()
    return not_yet(row, NOON - HOUR, ("It is paused since", "anna: the disk is full"), Answer.PAUSED)


@situation
def has_run_as_often_as_it_may() -> Situation:
    row = schedule(max_runs=1)
    due(row, NOON - HOUR)
    with travel(NOON - HOUR):
        claim_due(NOON - HOUR, embedded=True)
    row.refresh_from_db()
    return not_yet(row, NOON, ("It is paused since", "It has run once."), Answer.PAUSED, NOON + MINUTE)


@situation
def has_failed_too_often() -> Situation:
    row, world = schedule(pause_after_failures=1), World(NOON - HOUR)
    world.claim(row)
    world.start()
    world.end(last(row), Failed("builtins.ConnectionError", "no route to host"))
    row.refresh_from_db()
    words = ("It is paused since", f"1 failure; the last is execution {last(row).pk}.")
    return not_yet(row, NOON, words, Answer.PAUSED, NOON + MINUTE)


@situation
def starts_after_another_one() -> Situation:
    first, row = edge()
    words = ("It is due then", f"It starts after “Load data” (schedule {first.pk}).")
    return not_yet(row, NOON + HOUR, words, Answer.WILL_RUN)


# --- The question


@pytest.mark.parametrize("make", MAKERS, ids=lambda make: make.__name__)
def test_the_answer_and_the_page_of_the_execution_name_the_cause(make: Callable[[], Situation]) -> None:
    user = UserFactory(superuser=True)
    client = logged_in(user)
    found = make()
    found.row.refresh_from_db()
    with travel(found.now):
        (answer,) = why(Actor(user), found.row, f"{found.at:%Y-%m-%d %H:%M}", found.now)
        for word in found.words:
            assert word in answer.text
        if found.pending is not None:
            assert (answer.answer, answer.execution) == (found.pending.value, None)
            return
        row = SchedulerExecution.objects.get(pk=answer.execution)
        assert answer.state == row.state
        assert (row.state == "skipped") == (found.kind is not None)
        if found.kind is not None:
            assert kind_of(row.reason) is found.kind
        page = text_in(client.get(page_of(row)))
        assert [word for word in found.words if word not in page and "It must start" not in word] == []


def test_each_kind_of_skip_and_wait_is_asked_about() -> None:
    made, reasons = [], ""
    for make in MAKERS:
        with transaction.atomic():
            made.append(make())
            found = SchedulerExecution.objects.filter(state="skipped")
            reasons += " ".join(found.values_list("reason", flat=True))
            transaction.set_rollback(True)
        calendars.clear()
    assert {one.kind for one in made if one.kind is not None} == set(SkipReason)
    beginnings = [*skip_reasons.ON_PURPOSE, skip_reasons.MISSED, skip_reasons.EXPIRED, skip_reasons.PREDECESSOR]
    ends = [
        skip_reasons.NO_PRODUCER, skip_reasons.NOT_CAUGHT_UP, skip_reasons.OVER_CAP, skip_reasons.PERHAPS_EXCLUDED,
        skip_reasons.EDITED, skip_reasons.HELD_EDITED, skip_reasons.TOO_LATE, skip_reasons.RAN_BEFORE_RESTORE,
        skip_reasons.CONFIRMED, skip_reasons.SWITCHED_OFF, skip_reasons.BY_HANDLER,
    ]  # fmt: skip
    assert [words for words in (*beginnings, *ends) if words not in reasons] == []
    told = {one.pending for one in made}
    assert told >= {Answer.HELD, Answer.SPREAD, Answer.EXCLUDED, Answer.WILL_BE_EXCLUDED, Answer.WAITS, Answer.PAUSED}


def test_a_paused_service_that_is_run_by_hand_says_why_it_does_not_start() -> None:
    world, row = World(), schedule(stay_alive=True)
    with travel(NOON):
        row.status = False
        row.save()
        made = run_now(row, world.broker)
        client: Client = logged_in(UserFactory(superuser=True))
        assert skip_reasons.PAUSED_SERVICE in text_in(client.get(page_of(made)))
