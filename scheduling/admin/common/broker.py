"""Opens a connection to the broker for one request."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import transaction

from scheduling.broker import Broker, get_broker


@contextmanager
def open_broker() -> Iterator[Broker]:
    """Open a connection to the broker, and close it after the commit, because messages are published after the commit.

    Raises:
        BrokerError: the broker cannot be reached. Nothing was changed yet.
    """
    broker = get_broker()
    try:
        yield broker
    except BaseException:
        broker.close()
        raise
    # Without an open transaction, the broker is closed at once. With ATOMIC_REQUESTS the publish waits for the commit,
    # so the broker must stay open until then.
    transaction.on_commit(broker.close)
