"""Lets code run in the transaction of a test as if it had transactions of its own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from typing import Any, cast

from django.db import DatabaseError, connections


@contextmanager
def usable_afterwards() -> Iterator[None]:
    """Keep the transaction of the test usable if a statement inside the `with` block fails.

    A consumer's child has no transaction around the handler. In a test, a failed statement would make PostgreSQL refuse
    all later ones. So what was written since the beginning of the block is then undone.
    """
    saved: list[tuple[Any, str, int]] = [
        (connection, connection.savepoint() or "", len(connection.run_on_commit))
        for connection in connections.all(initialized_only=True)
        if connection.in_atomic_block
    ]
    try:
        yield
    finally:
        for connection, savepoint, callbacks in saved:
            if not _released(connection, savepoint):
                connection.savepoint_rollback(savepoint)
                del connection.run_on_commit[callbacks:]


def _released(connection: Any, savepoint: str) -> bool:
    if connection.needs_rollback:
        connection.set_rollback(False)
        return False
    try:
        connection.savepoint_commit(savepoint)
    except DatabaseError:
        return False
    return True


@contextmanager
def committed() -> Iterator[None]:
    """Call what the block registers with `transaction.on_commit`, although the test never commits."""
    before = {id(found): len(found.run_on_commit) for found in connections.all(initialized_only=True)}
    yield
    for connection in connections.all(initialized_only=True):
        first, registered = before.get(id(connection), 0), cast(list[Any], connection.run_on_commit)
        while connection.in_atomic_block and len(registered) > first:
            _savepoints, call, is_robust = registered.pop(first)
            with suppress(Exception) if is_robust else nullcontext():
                call()
