"""An app that kills or pauses its own process at one place in the code. A test chooses the place.

PLACES maps the name of each place to a function. The kill comes before or after a call of this function.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from functools import wraps
from typing import Any

from django.apps import AppConfig
from django.utils.module_loading import import_string

AFTER, BEFORE = "after", "before"

PLACES: dict[str, tuple[str, str]] = {
    "rows inserted": (AFTER, "scheduling.execution.claim.insert"),
    "start written": (AFTER, "scheduling.consumer.row_writer.begin"),
    "output written": (BEFORE, "scheduling.consumer.output_store._batches"),
    "claim committed": (BEFORE, "scheduling.producer.loop.publish"),
    "published": (BEFORE, "scheduling.broker.rabbitmq.publisher.Publisher._on_confirm"),
    "confirmed": (BEFORE, "scheduling.execution.publish.mark_published"),
    "started": (BEFORE, "scheduling.consumer.supervisor.Supervisor._launch"),
    "handler over": (AFTER, "scheduling.consumer.child._perform"),
    "outcome heard": (BEFORE, "scheduling.consumer.row_writer.RowWriter._settle_run"),
    "settled": (BEFORE, "scheduling.consumer.acknowledge.Answers.settled"),
    "predecessor succeeded": (BEFORE, "scheduling.consumer.successors.look"),
    "retry published": (BEFORE, "scheduling.consumer.acknowledge.Answers._retry_published"),
    "failure parked": (BEFORE, "scheduling.consumer.acknowledge.mark_parked"),
    "acknowledging": (BEFORE, "scheduling.broker.rabbitmq.adapter.RabbitBroker._answer"),
}


class Killer(AppConfig):
    """Kill the process once, before or after a call of the chosen function.

    The environment variable KILL_AT names the place. KILL_FLAG names a file that the kill creates. If the file exists,
    no process is killed. KILL_SIGNAL is the name of another signal than SIGKILL, such as SIGSTOP.
    """

    name = "tests.apps.killer"

    def ready(self) -> None:
        """Wrap the function that KILL_AT names. Without KILL_AT, change nothing."""
        if name := os.environ.get("KILL_AT"):
            when, place = PLACES[name]
            owner_path, attribute = place.rsplit(".", 1)
            owner = _import(owner_path)
            setattr(owner, attribute, _deadly(getattr(owner, attribute), when))


def _import(path: str) -> Any:
    try:
        return __import__(path, fromlist=["_"])
    except ModuleNotFoundError:
        return import_string(path)


def _deadly(function: Callable[..., Any], when: str) -> Callable[..., Any]:
    @wraps(function)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        # A producer calls `publish` every few seconds, often with an empty list. Such a call must not kill the process.
        has_work = args[0] if args and isinstance(args[0], list | set) else True
        if when == BEFORE and has_work:
            _die_once()
        result = function(*args, **kwargs)
        if when == AFTER and result:
            _die_once()
        return result

    return wrapped


def _die_once() -> None:
    try:
        os.close(os.open(os.environ["KILL_FLAG"], os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return
    os.kill(os.getpid(), signal.Signals[os.environ.get("KILL_SIGNAL", "SIGKILL")])
