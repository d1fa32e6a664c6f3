"""Records which handlers this process knows, so that other processes can tell who can run an execution."""

from __future__ import annotations

import hashlib
from datetime import datetime

from django.db import transaction

from scheduling.handlers.contract import contract, model_contract
from scheduling.handlers.listeners import TYPE, all_listeners
from scheduling.handlers.registry import handlers
from scheduling.handlers.targets import sync_targets
from scheduling.logs import get_logger
from scheduling.models import HandlerSet, KnownHandler, Process
from scheduling.processes.conflicts import again_after_conflicts
from scheduling.processes.database import is_away
from scheduling.processes.identity import container_id

log = get_logger(__name__)

ROWS_PER_INSERT = 500

Known = tuple[str, str, str]
"""The type of a handler, its name, and the hash of its params contract."""


def make_known(now: datetime) -> None:
    """Let the database know this process's code: a row for each target, and the handlers in the row of the process.

    New code may be deployed without a migration. A process that must hold (`processes.guard`) is not made known.

    Raises:
        django.db.DatabaseError: the database cannot be reached.
    """
    sync_targets()
    Process.objects.filter(container_id=container_id()).update(handler_set_id=record_handlers(now))


def record_handlers(now: datetime) -> int | None:
    """Record the handlers of this process. Returns the primary key of their set; None if they cannot be recorded.

    Only the first process of a version writes rows.

    Raises:
        django.db.DatabaseError: the database cannot be reached.
    """
    try:
        known = [(handler.type, handler.name, contract(handler)) for handler in handlers()]
        known += [(TYPE, f"{each.topic} {each.name}", model_contract(each.params)) for each in all_listeners()]
        return again_after_conflicts(lambda: _recorded(known, now))  # MySQL may end one of several first processes
    except Exception as error:
        if is_away(error):
            raise
        # The process works without the record. Runs of its handlers then do not wait for it.
        log.error("The handlers of this process cannot be recorded: %s", error)
        return None


def _recorded(known: list[Known], now: datetime) -> int:
    digest = hashlib.sha256("\n".join("\t".join(handler) for handler in known).encode()).hexdigest()
    found = HandlerSet.objects.filter(digest=digest).values_list("pk", flat=True)
    if (pk := found.first()) is not None:
        return pk
    with transaction.atomic():
        # Two processes may record the same set at once. The unique digest makes the second one wait for the first.
        HandlerSet.objects.bulk_create([HandlerSet(digest=digest, created_at=now)], ignore_conflicts=True)
        pk = HandlerSet.objects.values_list("pk", flat=True).get(digest=digest)
        rows = [KnownHandler(handler_set_id=pk, type=type_, name=name, contract=own) for type_, name, own in known]
        KnownHandler.objects.bulk_create(rows, batch_size=ROWS_PER_INSERT, ignore_conflicts=True)
    return pk
