"""Reads the options --only and --except of `run_worker`."""

from __future__ import annotations

from collections.abc import Sequence

from django.core.management.base import CommandError

from scheduling.broker import address_count
from scheduling.core.chosen import EVERYTHING, Chosen
from scheduling.core.queues import MAIN, STANDALONE
from scheduling.core.text import visible_text
from scheduling.handlers.registry import Handler, handlers

MAX_PATTERNS = 100


def chosen_handlers(only: str, without: str, queues: Sequence[str], broker_url: str) -> Chosen:
    """The handlers that a consumer runs.

    Args:
        only, without: patterns, separated by commas.
        queues: the queues that the consumer serves.

    Raises:
        CommandError: a pattern fits no handler, no handler is left, or the transport cannot keep the runs of the
            chosen handlers apart from others.
    """
    chosen = Chosen(_patterns("--only", only), _patterns("--except", without))
    if not chosen:
        return EVERYTHING
    known = list(handlers())
    unused = chosen.unused(handler.name for handler in known)
    if unused:
        raise CommandError(
            f"No handler is called {visible_text(unused[0], 100)!r}. See manage.py doctor for their names."
        )
    if not any(handler.name in chosen for handler in known):
        raise CommandError(f"{chosen} leaves no handler.")
    if address_count(broker_url):
        _refuse_shared_queues(chosen, known, queues)
    return chosen


def _patterns(option: str, text: str) -> tuple[str, ...]:
    found = tuple(dict.fromkeys(part.strip() for part in text.split(",") if part.strip()))
    if len(found) > MAX_PATTERNS:
        raise CommandError(f"{option} names {len(found)} patterns; at most {MAX_PATTERNS} are allowed.")
    return found


def _refuse_shared_queues(chosen: Chosen, known: Sequence[Handler], queues: Sequence[str]) -> None:
    """RabbitMQ delivers the messages of a queue in their order: a consumer cannot leave some of them to another one."""
    if STANDALONE in queues:
        raise CommandError(f"With RabbitMQ, a consumer of services runs all of them: leave {chosen} out.")
    served = {queue: [each for each in known if (each.queue or MAIN) == queue] for queue in queues}
    for queue, found in served.items():
        ours = [each.name for each in found if each.name in chosen]
        others = [each.name for each in found if each.name not in chosen]
        if ours and others:
            raise CommandError(
                f"With RabbitMQ, a consumer runs all handlers of a queue. {ours[0]!r} is chosen, {others[0]!r} is not, "
                f"and both use the queue {queue!r}. Give one of them a queue of its own: @worker(..., queue=...)."
            )
    if served and not any(each.name in chosen for found in served.values() for each in found):
        raise CommandError(f"No chosen handler uses the queue {', '.join(served)}. Name its queue with --queue.")
