"""A broker for one request."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import transaction

from scheduling.broker import Broker, get_broker


@contextmanager
def transport() -> Iterator[Broker]:
    """A broker that is closed when its work is done: after the commit, for that is when it publishes.

    Raises:
        BrokerError: it cannot be reached; nothing was changed yet.
    """
    broker = get_broker()
    try:
        yield broker
    except BaseException:
        broker.close()
        raise
    # Runs at once where no transaction is open. With ATOMIC_REQUESTS the publish waits, and so must this.
    transaction.on_commit(broker.close)
