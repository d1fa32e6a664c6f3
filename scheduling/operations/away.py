"""Refusals for a broker or a database that cannot be used in the middle of work on many rows."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from django.db import DatabaseError, InterfaceError
from django.utils.translation import gettext as _

from scheduling.broker import BrokerError
from scheduling.core.database_errors import Verdict
from scheduling.core.text import visible_text
from scheduling.operations.refused import Code, Refused
from scheduling.processes.database import verdict_of

log = logging.getLogger(__name__)


def broker_away(error: BrokerError, done: Sequence[int] = ()) -> Refused:
    """The refusal for an error of the broker.

    Args:
        done: the ids of the rows that were done before the error.
    """
    said = _("The broker cannot be used: %(error)s") % {"error": visible_text(error, 300)}
    return Refused(Code.BROKER_AWAY, said, extra={"done": list(done)})


def database_away(error: DatabaseError | InterfaceError, done: Sequence[int] = ()) -> Refused:
    """The refusal for an error of the database. Only the log has its text, which may name hosts.

    Args:
        done: the ids of the rows that were done before the error.

    Raises:
        DatabaseError, InterfaceError: the database can be used. The error is about one value.
    """
    if verdict_of(error) is Verdict.ITEM:
        raise error
    log.warning("Work on many rows has stopped, because the database cannot be used: %s", visible_text(error, 300))
    return Refused(Code.DATABASE_AWAY, _("The database is away. Try again later."), extra={"done": list(done)})
