"""Makes sentences that rows store, as the code makes them that stores them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, timedelta

from scheduling.core import (
    after,
    after_sentences,
    chosen,
    deferral,
    deployment,
    outcome,
    overlap,
    replay,
    run_bounds,
    run_sentences,
    skip_reasons,
    snooze,
)
from scheduling.core.breaker import BreakerState, Circuit, CircuitBreaker, Ends
from scheduling.core.deferral import Peer
from scheduling.core.deployment import Identity, Note, Standing
from scheduling.core.lifecycle import State
from scheduling.core.pauses import Scope, WorkPause
from scheduling.core.retry import GiveUp, RetryPolicy, decide
from scheduling.core.run_limit import Limit
from scheduling.core.skip_reasons import SkipReason
from scheduling.core.start_deadline import FOR_A_PRODUCER, where_it_waits
from scheduling.core.stored_sentence import _ARGUMENT, defined
from scheduling.core.zones import zone
from scheduling.execution import after_runs, backfill_sweep, cancel, confirm
from scheduling.execution.retention import expiry
from scheduling.inbox import actions, parked_rows
from scheduling.inbox import replay as inbox_replay
from scheduling.operations import replays
from scheduling.processes import guard, set_aside
from tests.support import NOON

BERLIN = zone("Europe/Berlin")
HOUR = timedelta(hours=1)

PEERS = [Peer(name, True, True, NOON, "new") for name in ("host-1", "host-2")]
PRODUCERS = [Peer("host-3", False, True, NOON, "new")]
SUBJECT = "the worker 'sync'"


def skips() -> dict[SkipReason, str]:
    """A sentence of each kind, as the rows of skipped executions have it."""
    span = (NOON - HOUR, NOON, 3)
    awaited = after_sentences.RUN_OF.format(
        name="Nightly", schedule=7, at="2026-03-10 02:00 CET", what=after_sentences.HAS_FAILED.format(execution=991)
    )
    return {
        SkipReason.PAUSED: skip_reasons.paused(NOON - HOUR, NOON, 5, BERLIN, "anna", "Lager voll"),
        SkipReason.NO_PRODUCER: skip_reasons.missed(*span, skip_reasons.NO_PRODUCER, BERLIN),
        SkipReason.TOO_LATE: skip_reasons.missed(*span, skip_reasons.too_late(24 * HOUR), BERLIN),
        SkipReason.OVERLAP: skip_reasons.left_out(991, False),
        SkipReason.EXPIRED: skip_reasons.expired(HOUR, 2 * HOUR, where_it_waits("blocked", "main", "Retries are off.")),
        SkipReason.NOT_NEEDED: skip_reasons.not_needed(""),
        SkipReason.NOT_CAUGHT_UP: skip_reasons.missed(*span, skip_reasons.NOT_CAUGHT_UP, BERLIN),
        SkipReason.OVER_CAP: skip_reasons.missed(*span, skip_reasons.OVER_CAP, BERLIN),
        SkipReason.EXCLUDED: skip_reasons.excluded(*span, "Weihnachten", BERLIN),
        SkipReason.HELD: skip_reasons.held(*span, "Inventur", BERLIN, skip_reasons.later_ran(NOON, BERLIN)),
        SkipReason.RESTORED: skip_reasons.missed(*span, skip_reasons.RAN_BEFORE_RESTORE, BERLIN),
        SkipReason.CONFIRMED: skip_reasons.missed(*span, skip_reasons.CONFIRMED, BERLIN),
        SkipReason.PREDECESSOR: skip_reasons.predecessor_late(NOON, awaited, BERLIN),
        SkipReason.OTHER: skip_reasons.missed(*span, skip_reasons.EDITED, BERLIN),
    }


def further_skips() -> Iterator[str]:
    yield from (skip_reasons.SWITCHED_OFF, skip_reasons.PAUSED_SERVICE, skip_reasons.left_out(1, True))
    yield from (skip_reasons.newer(1), skip_reasons.missed_date(NOON, HOUR))
    for why in (skip_reasons.PERHAPS_EXCLUDED, skip_reasons.too_late(timedelta(seconds=1))):
        yield skip_reasons.missed(NOON, NOON, 1, why, UTC)
    yield skip_reasons.excluded(NOON, NOON, 1, "", BERLIN)
    yield skip_reasons.held(NOON, NOON, 1, "", UTC, skip_reasons.HELD_EDITED)
    for by, why in (("", ""), ("anna", ""), ("", "Lager voll"), ("anna", run_bounds.ran_often(10))):
        yield skip_reasons.paused(NOON - HOUR, NOON + 24 * HOUR, 1, UTC, by, why)
    for where in (FOR_A_PRODUCER, where_it_waits("queued", "main", ""), where_it_waits("queued", "main", "x.")):
        yield skip_reasons.expired(HOUR, timedelta(minutes=1), where)


def ends() -> Iterator[str]:
    yield outcome.TimedOut(5.0).message
    yield outcome.MemoryLimit(1.5, 2.0).message
    yield outcome.Crashed(lost=True).message
    yield outcome.Crashed(exit_code=3).message
    yield outcome.Crashed().message
    for signal in (6, 9, 11, 15, 64):
        yield outcome.Crashed(signal=signal).message
    yield from (outcome.Cancelled("anna").message, outcome.Cancelled().message, outcome.Interrupted().message)
    yield from (str(outcome.RetryableError()), str(outcome.SoftTimeLimit(3)), snooze.NOT_READY)
    ended = snooze.allowed(outcome.Snoozed(snooze.NOT_READY, HOUR), snooze.MOST_SNOOZES)
    yield getattr(ended, "message", "")
    for most in (0, 1, 3):
        given_up = decide(RetryPolicy(max_retries=most), most, outcome.TimedOut(1.0))
        assert isinstance(given_up, GiveUp)
        yield given_up.reason
    given_up = decide(RetryPolicy(), 0, outcome.Failed("E", "", retryable=False))
    assert isinstance(given_up, GiveUp)
    yield given_up.reason


def waits() -> Iterator[str]:
    for until in (None, NOON):
        for by in ("", "anna"):
            yield WorkPause(Scope.SITE, "", "", "Umzug", by, until).sentence()
            yield WorkPause(Scope.QUEUE, "", "main", "Umzug.", by, until).sentence()
            yield WorkPause(Scope.HANDLER, "report", "sales", "Umzug", by, until).sentence()
    rules = CircuitBreaker(least=1)
    opened = Circuit().recorded(Ends(5, 5, "E"), rules, NOON)
    yield from (opened.reason, opened.sentence(SUBJECT), opened.sentence(SUBJECT, rules))
    yield from (Circuit(BreakerState.OPEN).sentence(SUBJECT), Circuit(BreakerState.HALF_OPEN).sentence(SUBJECT))
    yield opened.half_opened(NOON).sentence(SUBJECT)
    for key in ("", "Kunde 7"):
        limit = Limit(at_once=2, starts=1, key="customer" if key else "")
        yield limit.sentence(SUBJECT, key, 2, [NOON.timestamp()], NOON)
        yield limit.sentence(SUBJECT, key, 2, [], NOON)
        yield limit.sentence(SUBJECT, key, 1, [], NOON)
    yield from (overlap.blocked_by(7, policy) for policy in ("wait", "replace"))
    yield overlap.replaced_by(7)
    yield chosen.reason_for_left_out(SUBJECT, "host-1", chosen.Chosen(("sync",)))
    yield deferral.reason_for_unknown(SUBJECT, "host-9", PEERS, NOON, NOON)
    yield deferral.reason_for_unknown(SUBJECT, "host-9", [], NOON, NOON)
    yield deferral.reason_for_refused(SUBJECT, "host-9", [], PEERS, NOON, NOON)
    yield deferral.reason_for_refused(SUBJECT, "host-9", [], PRODUCERS, NOON, NOON)


def restored() -> Iterator[str]:
    yield deployment.MISSING
    for beat_at in (None, NOON):
        for at in (None, NOON):
            row = Standing(Identity("a"), "line", 0, beat_at)
            hold = deployment.judge(row, Identity("a"), [Note("line", 10_000, at)])
            assert hold is not None
            yield hold.said
    hold = deployment.judge(Standing(Identity("a"), "line", 0), Identity("b"), [])
    assert hold is not None
    yield hold.said


def others() -> Iterator[str]:
    yield from (run_bounds.ran_often(1), run_bounds.ran_often(2_000))
    yield from (run_bounds.failed_in_a_row(1, 7), run_bounds.failed_in_a_row(5, 7))
    for state in (None, State.CANCELLED, State.DISCARDED, State.SKIPPED, State.FAILED):
        yield getattr(replay.verdict(state, None), "reason", "")
    yield getattr(replay.verdict(None, f"TimedOut: {outcome.TimedOut(5.0).message}"), "reason", "")
    yield from (guard.NOT_ASKED, guard.FILE_REPLACED, set_aside.SET_ASIDE, confirm.SET_ASIDE, confirm.REPUBLISH)
    yield from (backfill_sweep.DELETED, backfill_sweep.SERVICE, cancel.DELETED, expiry.EXPIRED, parked_rows.GAVE_UP)
    yield from (inbox_replay.NOTHING_LEFT, inbox_replay.NOT_OVER, replays.DIED)
    yield from (after_runs.FIRST_REASON, *after_runs.REASONS.values())
    for at in (None, NOON):
        yield from (actions._republished("anna", at, edited=edited) for edited in (False, True))
    for by, reason in (("", ""), ("anna", ""), ("", "zu früh"), ("anna", "zu früh")):
        yield run_sentences.made_by_backfill(7, by, reason)


def standings() -> Iterator[str]:
    """What may have become of the run of a predecessor, in the sentence that has it."""
    run = after.Run(7, NOON, NOON, State.RUNNING, True)
    known = [after.Predecessor([after.Run(7, NOON, NOON, state, True)]) for state in State]
    known += [after.Predecessor([after.Run(7, NOON, NOON, State.SKIPPED, True, SkipReason.OVERLAP)])]
    known += [after.Predecessor([], paused=paused) for paused in (False, True)]
    known += [after.Predecessor([], problem=after_sentences.RUNS_UNREADABLE.format(error="x"))]
    known += [after.Predecessor([run])]
    for each in known:
        facts = {"name": "Nightly", "schedule": 7, "what": after._standing(NOON, each)}
        yield after_sentences.WAITS.format(why=after_sentences.RUN.format(**facts))
        why = after_sentences.RUN_OF.format(**facts, at="2026-03-10 02:00 CET")
        yield skip_reasons.predecessor_late(NOON, why, BERLIN)
        yield after_sentences.STARTED_AT_LATEST.format(why=why)


MAKERS: tuple[Callable[[], Iterator[str]], ...] = (further_skips, ends, waits, restored, others, standings)


def literals() -> list[str]:
    """The longer English pieces of all sentences and phrases."""
    found = [piece for one in defined() for piece in _ARGUMENT.split(one.template)[::2]]
    return sorted({piece.strip(" .:,;") for piece in found if len(piece) > 12})
