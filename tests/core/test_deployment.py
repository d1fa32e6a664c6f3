"""The rule that tells a copied or restored database, by tables and by simulated fleets."""

from __future__ import annotations

from datetime import timedelta
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduling.core.deployment import (
    KEPT_FINGERPRINTS,
    LOST_TAIL_SECONDS,
    Cause,
    Identity,
    Note,
    Standing,
    beat_due,
    decode_note,
    fingerprints,
    judge,
    seconds,
)
from tests.support import NOON, examples

OWN = Identity("", ("own",))


def row(identity: Identity = OWN, timeline: str = "T", worked: int = 7_200, held: str = "") -> Standing:
    return Standing(identity, timeline, worked, NOON, held)


@pytest.mark.parametrize(
    ("stored", "own", "same"),
    [
        (Identity("production", ("a",)), Identity("production", ("b",)), True),  # key, database or host changed
        (Identity("production", ("a",)), Identity("staging", ("a",)), False),  # a copy of everything but the name
        (Identity("", ("a",)), Identity("", ("a",)), True),
        (Identity("", ("a",)), Identity("", ("b",)), False),  # another key or another name of the database
        (Identity("", ("a",)), Identity("", ("b", "a")), True),  # the former key is in SECRET_KEY_FALLBACKS
        (Identity("", ("b", "a")), Identity("", ("a",)), True),  # an old process of a rolling deploy has only that key
        (Identity("", ("a",)), Identity("production", ("a",)), True),  # the site gets a name
        (Identity("", ("a",)), Identity("staging", ("b",)), False),
        (Identity("production", ("a",)), Identity("", ("a",)), True),  # an old process does not know the name yet
        (Identity("production", ("a",)), Identity("", ("b",)), False),
        (Identity("production", ("a",)), Identity("", ()), False),
    ],
)
def test_whose_database_it_is(stored: Identity, own: Identity, same: bool) -> None:
    hold = judge(row(stored), own, ())
    assert (hold is None) is same
    if hold is not None:
        assert hold.cause is Cause.OTHER
        assert str(stored) in hold.said
        assert str(own) in hold.said


def test_a_row_of_no_deployment_belongs_to_the_first_process() -> None:
    assert judge(row(Identity()), OWN, ()) is None
    assert Identity().joined(Identity("production", ("new", "old"))) == Identity("production", ("new",))


def test_old_and_new_processes_of_a_deploy_do_not_rewrite_the_row_in_turn() -> None:
    old, new = Identity("", ("a",)), Identity("production", ("b", "a"))
    stored = old.joined(new)
    assert stored == Identity("production", ("b", "a"))
    assert stored.joined(old) == stored.joined(new) == stored


def test_the_row_keeps_few_fingerprints() -> None:
    stored = Identity()
    for number in range(20):
        stored = stored.joined(Identity("", (str(number),)))
    assert stored.fingerprints == tuple(str(number) for number in range(19, 19 - KEPT_FINGERPRINTS, -1))


def test_a_fingerprint_depends_on_the_key_and_the_database_and_hides_the_key() -> None:
    (one,) = fingerprints(["secret"], "cron")
    assert {one} & {*fingerprints(["Secret"], "cron"), *fingerprints(["secret"], "staging")} == set()
    assert fingerprints(["new", "secret"], "cron")[1] == one
    assert "secret" not in one


def test_a_deleted_row_is_a_hold() -> None:
    hold = judge(None, OWN, ())
    assert hold is not None
    assert hold.cause is Cause.MISSING


@pytest.mark.parametrize(
    ("note", "held"),
    [
        (Note("T", 7_200), False),
        (Note("T", 7_200 + LOST_TAIL_SECONDS), False),  # a fail-over lost the last seconds
        (Note("T", 7_200 + LOST_TAIL_SECONDS + 1), True),
        (Note("T", 7_200 + 3_600, NOON), True),
        (Note("T", 0), False),
        (Note("other", 10**9), False),  # a beat of another site, or of a database that was set up anew
        (Note("next", 10, NOON, ("T",)), True),  # the backup is older than the last confirmation
        (Note("next", 10, NOON, ("S",)), False),
    ],
)
def test_a_newer_beat_that_is_known_tells_a_restored_database(note: Note, held: bool) -> None:
    hold = judge(row(), OWN, [note])
    assert (hold is not None and hold.cause is Cause.RESTORED) is held
    if hold is not None:
        assert hold.newest == note


def test_the_newest_note_says_until_when_runs_were_started() -> None:
    notes = [Note("T", 9_000, NOON), Note("T", 9_900, NOON + timedelta(minutes=15)), Note("T", 8_000, None)]
    hold = judge(row(), OWN, notes)
    assert hold is not None
    assert hold.newest == notes[1]
    assert hold.known_until is not None
    assert hold.known_until > NOON + timedelta(minutes=15)


def test_a_recorded_hold_counts_for_a_process_that_knows_nothing() -> None:
    hold = judge(row(held="The database was restored."), OWN, ())
    assert hold is not None
    assert hold.said == "The database was restored."


@given(st.text(max_size=60) | st.binary(max_size=60))
def test_a_damaged_note_is_no_note(body: str | bytes) -> None:
    decode_note(body)


@pytest.mark.parametrize("value", [None, -1, "7", 1.5, float("nan"), 10**13, True, [], {}])
def test_unusable_seconds_are_no_seconds(value: object) -> None:
    assert seconds(value) == 0


@given(st.text(max_size=32), st.integers(0, 10**11), st.none() | st.just(NOON), st.lists(st.text(max_size=9)))
def test_a_note_is_read_as_it_was_written(timeline: str, worked: int, at: object, former: list[str]) -> None:
    note = Note(timeline, worked, at, tuple(former))  # type: ignore[arg-type]
    assert decode_note(note.encode()) == note


class Fleet:
    """Processes that beat at times of their own, over one row. Every process remembers what it saw."""

    def __init__(self, random: Random, count: int, interval: int) -> None:
        self.random, self.interval = random, interval
        self.worked = 0
        self.seen: list[int | None] = [None] * count
        self.known = [0] * count
        self.holds = 0

    def turn(self, lost_tail: int = 0) -> None:
        """One heartbeat of each process, in any order. A fail-over may lose the newest seconds before it."""
        self.worked = max(0, self.worked - lost_tail)
        for number in self.random.sample(range(len(self.seen)), len(self.seen)):
            if judge(row(worked=self.worked), OWN, [Note("T", self.known[number])]) is not None:
                self.holds += 1
            seen, self.seen[number] = self.seen[number], self.worked
            if beat_due(seen, self.worked):
                self.worked += self.interval
                self.seen[number] = self.worked
            self.known[number] = self.worked

    def restart(self) -> None:
        """Replace one process, as a rolling deploy does."""
        number = self.random.randrange(len(self.seen))
        self.seen[number], self.known[number] = None, 0


@examples(200)
@given(st.integers(0, 2**32), st.integers(1, 20), st.integers(1, 15))
def test_no_fleet_holds_through_deploys_and_fail_overs(seed: int, count: int, interval: int) -> None:
    random = Random(seed)
    fleet = Fleet(random, count, interval)
    for _number in range(100):
        lost = random.choice([0, 0, 0, 0, random.randrange(LOST_TAIL_SECONDS - 2 * interval)])
        fleet.turn(lost)
        if random.random() < 0.3:
            fleet.restart()
        fleet.turn()
    assert fleet.holds == 0


@examples(100)
@given(st.integers(0, 2**32), st.integers(1, 20))
def test_one_process_of_a_fleet_writes_in_each_interval(seed: int, count: int) -> None:
    fleet = Fleet(Random(seed), count, 5)
    for _number in range(100):
        fleet.turn()
    assert 200 <= fleet.worked <= 500
