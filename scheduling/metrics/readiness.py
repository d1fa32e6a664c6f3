"""Finds out whether the web process can serve: the database answers, is migrated and is not held."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import lru_cache

from django.db import connections
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder

from scheduling.core.deployment import judge
from scheduling.logs import get_logger
from scheduling.monitoring.doctor.database import alias
from scheduling.processes.answer_limit import AnswerLimit
from scheduling.processes.deployment_row import make_row_if_new, read_row, standing
from scheduling.processes.own_identity import own_identity
from scheduling.processes.server_clock import elapsed_seconds

log = get_logger(__name__)

ANSWER_SECONDS = 1.5
"""So long a probe waits. Load balancers usually wait two seconds or longer."""
FRESH_SECONDS = 1.0
"""So long an answer is repeated, so that strangers cannot make the process open many connections."""
ABANDONED_SECONDS = 10.0
"""A look that hangs for so long is abandoned, and a new one begins: the database may be back."""
MOST_HANGING = 5
"""So many looks may hang at once. Then no new one begins."""


class _Look:
    """One look, which a thread of its own takes."""

    def __init__(self, look: Callable[[], str]) -> None:
        self._look, self.answer = look, "The database does not answer."
        self.done, self.began = threading.Event(), elapsed_seconds()
        threading.Thread(target=self._run, name="readiness", daemon=True).start()

    @property
    def age(self) -> float:
        """How many seconds ago it began."""
        return elapsed_seconds() - self.began

    def _run(self) -> None:
        try:
            self.answer = self._look()
        except Exception as error:
            log.warning("Not ready: %s: %s", type(error).__name__, error)
            self.answer = f"{type(error).__name__}: {error}"
        finally:
            self.done.set()
            connections.close_all()  # those of this thread


class Readiness:
    """Looks at the database in a thread, because a database that hangs must not keep the answer waiting.

    Requests at the same time share one look.

    Args:
        look: returns why the process is not ready; empty if it is.
        seconds: how long a probe waits for the answer.
        fresh: how many seconds an answer is repeated.
        abandoned: after how many seconds a look that hangs is abandoned.
    """

    def __init__(
        self,
        look: Callable[[], str],
        seconds: float = ANSWER_SECONDS,
        fresh: float = FRESH_SECONDS,
        abandoned: float = ABANDONED_SECONDS,
    ) -> None:
        self._look, self._seconds, self._fresh, self._abandoned = look, seconds, fresh, abandoned
        self._lock = threading.Lock()
        self._looks: list[_Look] = []
        """The newest look, and those that hang."""

    def problem(self) -> str:
        """Why the process is not ready; empty if it is. It raises no error."""
        try:
            with self._lock:
                look = self._current()
        except RuntimeError:  # the process has no room for another thread
            return "No thread can be started."
        return look.answer if look.done.wait(self._seconds) else "The database does not answer."

    def _current(self) -> _Look:
        """The look to wait for: the newest one, or a new one."""
        if self._looks:
            newest = self._looks[-1]
            if newest.age < (self._fresh if newest.done.is_set() else self._abandoned):
                return newest
            self._looks = [look for look in self._looks if not look.done.is_set()]
            if len(self._looks) >= MOST_HANGING:
                return newest
        self._looks.append(_Look(self._look))
        return self._looks[-1]


def problem_of_database() -> str:
    """Why the database cannot be used; empty if it can.

    Raises:
        django.db.DatabaseError: the database cannot be reached.
    """
    connection = connections[alias()]
    with AnswerLimit(connection, ANSWER_SECONDS):
        applied = set(MigrationRecorder(connection).applied_migrations())
        if missing := [name for name in _newest_migrations() if name not in applied]:
            return f"Migrations are not applied: {'.'.join(missing[0])}."
        values = read_row()
        if values is None and make_row_if_new():
            values = read_row()
        hold = judge(None if values is None else standing(values), own_identity(), ())
    return hold.said if hold is not None else ""


@lru_cache(maxsize=1)
def _newest_migrations() -> tuple[tuple[str, str], ...]:
    """The last migration of each app, as the code has them."""
    return tuple(sorted(MigrationLoader(None).graph.leaf_nodes()))


readiness = Readiness(problem_of_database)
"""The readiness of this process."""
