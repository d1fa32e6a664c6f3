"""The connection to the broker that code of a project uses: one for each process, opened when it is first needed."""

from __future__ import annotations

import atexit
import os
from threading import Lock

from scheduling.broker import Broker, get_broker
from scheduling.conf import get_conf

_lock = Lock()
_open: dict[tuple[int, str], Broker] = {}
"""The transport of a process, by process id and URL. A forked process must not use the connection of its parent."""


def own_broker() -> Broker:
    """The transport of this process. It is closed when the process ends.

    Raises:
        ConfError: CRON_BROKER_URL cannot be read.
    """
    url = get_conf().broker_url
    key = (os.getpid(), url)
    with _lock:
        if key not in _open:
            _open[key] = get_broker(url)
        return _open[key]


@atexit.register
def close_own_broker() -> None:
    """Disconnect. The next call of `own_broker` connects again."""
    with _lock:
        for pid, url in list(_open):
            broker = _open.pop((pid, url))
            if pid == os.getpid():
                broker.close()


def _after_fork() -> None:
    # Another thread of the parent may have held the lock.
    global _lock
    _lock = Lock()


os.register_at_fork(after_in_child=_after_fork)
