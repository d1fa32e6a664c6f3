"""The one statement in which a process asks its database everything that it wants to know at a heartbeat."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import connection
from django.db.models import QuerySet

from scheduling.core.clock_skew import Skew, skew
from scheduling.models import Deployment
from scheduling.models.deployment import ONLY
from scheduling.processes.deployment_row import Values, selected
from scheduling.processes.server_clock import TIME, in_utc


@dataclass(frozen=True)
class Answer:
    """What the database has answered.

    Args:
        time: the server's time, and how far this host's clock is from it; None with SQLite.
        found: the names of the questions whose queryset has a row.
        deployment: the row of the deployment as `deployment_row.read_row` returns it; None if there is none.
    """

    time: tuple[datetime, Skew] | None
    found: set[str]
    deployment: Values | None


def ask_at_once(questions: Mapping[str, QuerySet]) -> Answer:
    """Ask for the server's time, which of the querysets have rows, and the row of the deployment, with one statement.

    An idle process asks all this again and again, and hundreds of processes may be idle.

    Raises:
        django.db.DatabaseError: the database cannot be reached.
    """
    quote = connection.ops.quote_name
    asked, values = [TIME.get(connection.vendor, "NULL")], list[Any]()
    for rows in questions.values():
        sql, params = rows.order_by().values("pk").query.sql_with_params()
        asked.append(f"EXISTS ({sql})")
        values += params
    asked += selected("deployment")
    statement = (
        # One row in any case. The SQL of querysets has no values in it.
        f"SELECT {', '.join(asked)} FROM (SELECT 1 AS one) one_row "  # noqa: S608
        f"LEFT JOIN {quote(Deployment._meta.db_table)} deployment ON deployment.{quote('id')} = %s"
    )
    before = time.time()
    with connection.cursor() as cursor:
        cursor.execute(statement, [*values, ONLY])
        theirs, *answers = cursor.fetchone()
    after = time.time()
    found = {name for name, exists in zip(questions, answers, strict=False) if exists}
    row = tuple(answers[len(questions) :])
    deployment = row if row[0] is not None else None
    if theirs is None:
        return Answer(None, found, deployment)
    theirs = in_utc(theirs)
    return Answer((theirs, skew(before, theirs.timestamp(), after)), found, deployment)
