"""Makes random policies of schedules, and the columns that hold them."""

from __future__ import annotations

import random
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from tests.e2e.policy_rules import Policy, Window

MINUTE = 60
ALONE = ("skip", "wait", "replace")


def base(pick: random.Random, number: int, now: float, calendars: Sequence[int]) -> Policy:
    """A policy of its own for each number, so that a few schedules have all of them; further rules by chance."""
    every = pick.choice([2, 3, 4, 5, 7])
    policy = Policy(every, int(now) - pick.randrange(60), overlap=("allow", *ALONE)[number % 4])
    own: dict[str, Any] = [
        {},
        {"spread": pick.choice([2, 3, 8])},
        {"spread": every, "each": True},
        {"deadline": pick.choice([1, 2, 4])},
        {"missed": "all", "cap": pick.choice([2, 3]), "overlap": "allow"},
        {"missed": "none"},
        {"within": pick.choice([3, 6])},
        {"calendar": calendars[0]},
        {"calendar": calendars[1], "hold": True},
        {"calendar": calendars[1]},
        {"calendar": calendars[0], "hold": True},
        {"most": pick.choice([2, 5])},
        {"failures": 2},
        {"since": int(now) + pick.randrange(2, 8), "until": int(now) + pick.randrange(12, 400)},
        {"every": MINUTE, "start": 0},
    ][number % 15]
    return more(pick, policy._replace(**own), calendars, 0.2)


def more(pick: random.Random, policy: Policy, calendars: Sequence[int], chance: float) -> Policy:
    """The policy with some further rules."""
    rules: list[dict[str, Any]] = [
        {"spread": pick.choice([0, 2, 6])},
        {"spread": pick.choice([2, 5]), "each": True},
        {"deadline": pick.choice([None, 2, 5])},
        {"missed": "all", "cap": pick.choice([2, 4])},
        {"missed": "none", "cap": 100, "within": 86_400},
        {"missed": "latest", "cap": 100, "within": pick.choice([4, 9, 86_400])},
        {"calendar": pick.choice([*calendars, None])},
        {"calendar": pick.choice(calendars), "hold": True},
        {"hold": False},
    ]
    for rule in rules:
        if pick.random() < chance:
            policy = policy._replace(**rule)
    if not policy.spread:
        policy = policy._replace(each=False)
    if policy.missed == "none":
        policy = policy._replace(within=86_400)
    return policy if policy.missed == "all" else policy._replace(cap=100)


def expression(policy: Policy) -> str:
    """The times as the field of a schedule holds them."""
    if policy.every == MINUTE and not policy.start:
        return "* * * * *"
    return f"@every {policy.every}s from {datetime.fromtimestamp(policy.start, UTC):%Y-%m-%dT%H:%M:%SZ}"


def columns(policy: Policy) -> dict[str, Any]:
    """The columns of a schedule that may be edited."""
    return {
        "status": policy.active,
        "overlap": policy.overlap,
        "spread_seconds": policy.spread or None,
        "spread_each": policy.each,
        "start_within_seconds": policy.deadline,
        "missed_runs": policy.missed,
        "missed_cap": None if policy.cap == 100 else policy.cap,
        "missed_within_seconds": None if policy.within == 86_400 else policy.within,
        "active_from": _instant(policy.since),
        "active_until": _instant(policy.until),
        "max_runs": policy.most,
        "pause_after_failures": policy.failures,
        "calendar_id": policy.calendar,
        "on_excluded": "hold" if policy.hold else "skip",
    }


def _instant(at: int | None) -> datetime | None:
    return None if at is None else datetime.fromtimestamp(at, UTC)


def windows(pick: random.Random, now: float, seconds: float, phase: int, label: str) -> tuple[Window, ...]:
    """Windows of a minute from the present minute on, or from the next one. One or two minutes lie between them."""
    begin, last, found = int(now) // MINUTE * MINUTE + phase * MINUTE, now + seconds + 10 * MINUTE, []
    while begin < last:
        found.append(Window(begin, begin + MINUTE, f"{label} window {len(found)}"))
        begin += MINUTE * pick.choice([2, 2, 3])
    return tuple(found)


def entries(found: Sequence[Window]) -> str:
    """The entries of a calendar in UTC."""
    return "\n".join(f"{_local(window.begin)}..{_local(window.end)} {window.label}" for window in found)


def _local(at: int) -> str:
    return f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M}"
