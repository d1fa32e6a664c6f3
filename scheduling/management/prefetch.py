"""Reads the option --prefetch of `run_worker`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from django.core.management.base import CommandError

from scheduling.broker import address_count
from scheduling.core.queues import MAIN
from scheduling.core.text import visible_text
from scheduling.handlers import Handler

MOST = 10_000
"""RabbitMQ allows 65,535 for a channel. More messages that wait in one process help no one."""


def prefetch_of(text: str, queues: Sequence[str], concurrency: int, broker_url: str) -> dict[str, int]:
    """How many messages of each queue the broker brings before the first one is answered.

    Args:
        text: the option, such as `20` for each queue, or `reports=20,mail=50`; empty for the slots.
        queues: the queues that the consumer serves.

    Returns:
        A number for each queue, at least `concurrency`, because each slot holds a message.

    Raises:
        CommandError: the text is no such list, a queue is not served, a number is less than `concurrency` or more than
            `MOST`, or the transport fetches nothing ahead.
    """
    found = dict.fromkeys(queues, concurrency)
    if not text.strip():
        return found
    if not address_count(broker_url):
        raise CommandError("--prefetch is for RabbitMQ. With database://, consumers read the table: leave it out.")
    parts = [part.strip() for part in text.split(",")]
    for part in parts:
        queue, equals, number = part.rpartition("=")
        if equals and queue not in found:
            raise CommandError(f"--prefetch names the queue {visible_text(queue, 60)!r}, which --queue does not.")
        if not equals and len(parts) > 1:
            raise CommandError("--prefetch is one number, or a list such as reports=20,mail=50.")
        found |= dict.fromkeys([queue] if equals else queues, _number(number, concurrency))
    return found


def with_batches(prefetch: dict[str, int], handlers: Iterable[Handler], concurrency: int) -> dict[str, int]:
    """The same numbers, and more for the queues of batch handlers: each slot may hold the messages of one batch.

    Args:
        handlers: the handlers that the consumer runs.
    """
    found = dict(prefetch)
    for handler in handlers:
        queue = handler.queue or MAIN
        if handler.batch is not None and queue in found:
            found[queue] = max(found[queue], min(handler.batch.size * concurrency, MOST))
    return found


def _number(text: str, concurrency: int) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) <= len(str(MOST)) and concurrency <= int(text) <= MOST):
        raise CommandError(
            f"--prefetch: a number is from {concurrency} (--concurrency: each slot holds a message) to {MOST:,}, "
            f"not {visible_text(text, 30)!r}."
        )
    return int(text)
