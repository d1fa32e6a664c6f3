"""The name, type, labels and meaning of each metric. docs/metrics.md explains them, and a test compares both."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Kind(StrEnum):
    """The types of Prometheus."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


@dataclass(frozen=True)
class Metric:
    """One metric. The name of a counter ends with `_total`."""

    name: str
    kind: Kind
    help: str
    labels: tuple[str, ...] = ()


def _counter(name: str, text: str, *labels: str) -> Metric:
    return Metric(f"app_schedule_{name}_total", Kind.COUNTER, text, labels)


def _gauge(name: str, text: str, *labels: str) -> Metric:
    return Metric(f"app_schedule_{name}", Kind.GAUGE, text, labels)


ATTEMPTS = _counter("job_attempts", "Attempts that have ended.", "type", "target", "outcome")
DURATION = Metric(
    "app_schedule_job_duration_seconds", Kind.HISTOGRAM, "Durations of ended attempts.", ("type", "target")
)
RETRIES = _counter("job_retries", "Ended attempts that were retries.", "type", "target")
NO_LISTENER = _counter("job_no_listener", "Events that were delivered to no listener.")

LAG = _gauge("lag_seconds", "How long the oldest due occurrence waits for a producer.")
INBOX = _gauge("inbox_size", "Failures in the failed inbox; the count stops at 10000.")
INBOX_OLDEST = _gauge("inbox_oldest_seconds", "Age of the oldest failure in the inbox.")
OPEN = _gauge("executions_open", "Executions that wait or run; each count stops at 5000.", "state", "queue")
PROCESSES = _gauge("processes", "Processes that are alive, or fell silent in the last day.", "kind", "state")
HEARTBEAT = _gauge("process_heartbeat_age_seconds", "Age of the newest heartbeat of a running process.", "kind")
SLOTS = _gauge("consumer_slots", "Runs that the alive consumers can run at once.")
SLOTS_BUSY = _gauge("consumer_slots_busy", "Slots with a run, as of the last heartbeats.")
SLOTS_NEEDED = _gauge(
    "slots_needed", "Slots that would end the waiting runs and the next five minutes' in five minutes.", "queue"
)
BREAKERS = _gauge("breakers_open", "Circuit breakers that are open or half open.")
PAUSES = _gauge("pauses", "Pauses of handlers, queues and the whole site.")
HELD = _gauge("held", "1 while nothing is started, because a person must confirm the database.")
LOOKS_FAILED = _gauge("looks_failed", "Groups of gauges that are missing from this answer, because of an error.")

INSTALLATION = (
    ATTEMPTS, DURATION, RETRIES, NO_LISTENER, LAG, INBOX, INBOX_OLDEST, OPEN, PROCESSES, HEARTBEAT, SLOTS, SLOTS_BUSY,
    SLOTS_NEEDED, BREAKERS, PAUSES, HELD, LOOKS_FAILED,
)  # fmt: skip
"""The metrics of the page /metrics."""

TURNS = _counter("process_turns", "Turns of this process's main loop.")
CLAIMS = _counter("process_claims", "Occurrences that this producer has claimed.")
PUBLISHES = _counter("process_publishes", "Messages that this process has sent to the broker.")
CONFIRMS = _counter("process_confirms", "Messages that the broker has confirmed to this process.")
STARTS = _counter("process_starts", "Runs that this consumer has started.")
STARTED = _gauge("process_start_time_seconds", "When this process has started, in seconds since 1970.")
OWN_SLOTS = _gauge("process_slots", "Runs that this consumer can run at once.")
OWN_BUSY = _gauge("process_slots_busy", "Runs that this consumer runs.")
OWN_HELD = _gauge("process_held", "1 while this process claims and starts nothing, because it holds.")

OF_PROCESS = (TURNS, CLAIMS, PUBLISHES, CONFIRMS, STARTS, STARTED, OWN_SLOTS, OWN_BUSY, OWN_HELD)
"""The metrics of `run_scheduler --metrics-port` and `run_worker --metrics-port`."""
