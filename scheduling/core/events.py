"""The rules about events: the names of topics, the instant of an event, and the retry policy of one event."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from scheduling.core.retry import BOUNDS, RetryPolicy, RetryPolicyInvalid
from scheduling.core.words import gettext as _
from scheduling.core.words import grouped
from scheduling.core.zones import resolve_wall, zone

LONGEST_TOPIC = 100
LARGEST_METADATA = 50
"""So many entries at most. They are for searching and for signals; the payload is for the work."""

WORKER = "event"
"""The name of the built-in worker that delivers events."""


@dataclass(frozen=True)
class Event:
    """What a listener knows of the event besides its payload.

    Args:
        topic: the name under which listeners are registered.
        metadata: what the caller of `schedule_at` gave with it.
    """

    topic: str
    metadata: Mapping[str, Any] = field(default_factory=dict)


def topic_problem(topic: object) -> str:
    """Why there can be no such topic; empty if there can."""
    if not isinstance(topic, str) or not topic or not topic.isascii() or not topic.isprintable() or " " in topic:
        said = _("A topic is a text of printable ASCII characters without spaces, not {topic}.")
        return said.format(topic=f"{topic!r:.120}")
    if len(topic) > LONGEST_TOPIC:
        said = _("A topic has at most {most} characters, not {length}.")
        return said.format(most=LONGEST_TOPIC, length=grouped(len(topic)))
    return ""


def metadata_problem(metadata: object) -> str:
    """Why the metadata cannot be used, apart from what no database can store; empty if they can."""
    if not isinstance(metadata, Mapping) or not all(isinstance(key, str) for key in metadata):
        return _("metadata is a mapping with texts as keys.")
    if len(metadata) > LARGEST_METADATA:
        said = _("metadata has {count} entries; at most {most} are allowed.")
        return said.format(count=grouped(len(metadata)), most=LARGEST_METADATA)
    return ""


def instant_of(run_at: datetime, timezone: str) -> datetime:
    """The instant in UTC. A naive `run_at` is a local time of the zone; a skipped local time comes after the gap.

    Raises:
        ValueError: there is no such zone, or no such instant.
    """
    zone(timezone)
    try:
        return run_at.astimezone(UTC) if run_at.tzinfo is not None else resolve_wall(run_at, timezone)
    except OverflowError:
        raise ValueError(f"run_at= is too early or too late: {run_at!r}.") from None


def stored_policy(policy: RetryPolicy) -> dict[str, Any]:
    """A retry policy as JSON. Of a backoff that is a function, its delays are stored.

    Raises:
        ValueError: its backoff cannot be used.
    """
    if policy.problem:
        raise ValueError(f"retry= cannot be used: {policy.problem}")
    backoff = policy.backoff if isinstance(policy.backoff, str) else list(policy.backoff)  # type: ignore[arg-type]
    numbers = {name: getattr(policy, name) for name in (*BOUNDS, "jitter")}
    return {**numbers, "backoff": backoff}


def policy_of(params: Mapping[str, Any]) -> RetryPolicy | None:
    """The retry policy that the params of an event name; None if they name none that can be used."""
    found = params.get("retry")
    if not isinstance(found, Mapping) or not found:
        return None
    if not found.keys() <= {*BOUNDS, "jitter", "backoff"} or not isinstance(
        found.get("backoff", "exponential"), str | list
    ):
        return None
    try:
        policy = RetryPolicy(**found)
    except (RetryPolicyInvalid, TypeError, ValueError):
        return None
    return None if policy.problem else policy
