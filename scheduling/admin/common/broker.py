"""Opens a connection to the broker for one request."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import transaction

from scheduling.broker import Broker, get_broker


@contextmanager
def open_broker() -> Iterator[Broker]:
    """Open a connection to the broker, and close the connection after the commit.

    Messages are published after the commit, so the connection must stay open until then.

    Raises:
        BrokerError: the broker cannot be reached. Nothing was changed yet.
    """
    broker = get_broker()
    try:
        yield broker
    except BaseException:
        broker.close()
        raise
    # With ATOMIC_REQUESTS, a transaction is still open here. Without an open transaction, `on_commit` closes at once.
    transaction.on_commit(broker.close)
