"""The steps of a run: which parts of a handler are finished, and from where it goes on.

`Steps` has the rules. A `Ledger` stores what is finished: in the database (`execution.steps`), or in memory for a
`Run` that a unit test has made.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, Protocol

from django.db.models import QuerySet

from scheduling.core import json_bounds
from scheduling.core.results import encode
from scheduling.core.steps import MOST_STEPS, HandedBack, StepError, check_name
from scheduling.handlers.walk import Walk

STEP, CURSOR = "step", "cursor"
"""The kinds of marks. They are the values of `RunStep.Kind`."""

CHECKPOINT = "checkpoint"
"""The name of the cursor that `run.checkpoint` moves."""

BLOCK = "run.atomic"

LONGEST_EVERY = 60.0
"""The longest time, in seconds, for which a checkpoint may wait to be stored."""


class Ledger(Protocol):
    """Stores the marks of one execution on behalf of one attempt."""

    def read(self, kind: str, name: str) -> str | None:
        """The stored JSON of a mark; None if there is no such mark."""

    def transaction(self) -> AbstractContextManager[Any]:
        """A transaction of the default database. It must be the outermost one."""

    def write(self, kind: str, name: str, value: str) -> None:
        """Store a mark in the open transaction, as its last statements. First, check that the attempt still owns it."""

    def store(self, name: str, value: str) -> None:
        """Store the position of a cursor in a transaction of its own, if the attempt still owns its execution."""

    def check_owner(self) -> None:
        """Raise `FencedOff` if the attempt no longer owns its execution. In a transaction, lock it until the end."""

    def took(self, name: str, seconds: float) -> None:
        """Note how long the transaction of a step took."""


class MemoryLedger:
    """Stores marks in memory, without transactions. A unit test may give one ledger to several attempts."""

    def __init__(self) -> None:
        self.marks: dict[tuple[str, str], str] = {}

    def read(self, kind: str, name: str) -> str | None:
        return self.marks.get((kind, name))

    def transaction(self) -> AbstractContextManager[Any]:
        return nullcontext()

    def write(self, kind: str, name: str, value: str) -> None:
        self.marks[kind, name] = value

    def store(self, name: str, value: str) -> None:
        self.write(CURSOR, name, value)

    def check_owner(self) -> None:
        return None

    def took(self, name: str, seconds: float) -> None:
        return None


class Steps:
    """The steps and cursors of one attempt.

    Args:
        stopping: whether the consumer was asked to stop.
    """

    def __init__(self, ledger: Ledger | None = None, stopping: Callable[[], bool] = lambda: False) -> None:
        self._ledger: Ledger = ledger or MemoryLedger()
        self.stopping = stopping
        self.handed_back: HandedBack | None = None
        """The error that has ended the attempt at a checkpoint."""
        self._used: set[tuple[str, str]] = set()
        self._open = ""
        """What is open at present, such as the name of a step; empty between the steps."""
        self._position: str | None = None
        """The checkpoint that the open block of `atomic` stores at its end."""
        self._stored_at = -LONGEST_EVERY
        """When a checkpoint was stored by itself, by the monotonic clock."""

    def step(self, name: str, function: Callable[..., Any], args: tuple[Any, ...], *, atomic: bool) -> Any:
        """Call the function, unless an earlier attempt has finished the step; returns the result."""
        key = self._use(STEP, name)
        stored = self._ledger.read(STEP, key)
        if stored is not None:
            return _decoded(stored, name)
        self._hand_back_if_stopping()
        with self._opened(f"the step {name!r}"):
            if atomic:
                began = time.monotonic()
                with self._ledger.transaction():
                    value = _encoded(function(*args), f"The result of the step {name!r}")
                    self._ledger.write(STEP, key, value)
                self._ledger.took(name, time.monotonic() - began)
            else:
                # What leaves the database cannot be undone, so an attempt that was fenced off must not begin with it.
                self._ledger.check_owner()
                value = _encoded(function(*args), f"The result of the step {name!r}")
                with self._ledger.transaction():
                    self._ledger.write(STEP, key, value)
        return _decoded(value, name)

    def each(self, rows: QuerySet[Any], function: Callable[[Any], object], key: str, name: str) -> int:
        """Call the function for each row after the cursor, in a transaction that also moves the cursor."""
        cursor = self._use(CURSOR, name or str(rows.model._meta.label))
        walk, count = Walk(rows, key), 0
        stored = self._ledger.read(CURSOR, cursor)
        for position in walk.after(None if stored is None else _decoded(stored, cursor)):
            self._hand_back_if_stopping()
            with self._opened("run.each"), self._ledger.transaction():
                row = walk.row(position)
                if row is None:
                    continue  # it is gone, or the rows no longer include it
                function(row)
                self._ledger.write(CURSOR, cursor, _encoded(walk.portable(position), "The position of run.each"))
            count += 1
        return count

    @contextmanager
    def atomic(self) -> Iterator[None]:
        """A transaction that is committed only if the attempt still owns its execution, with the last checkpoint."""
        with self._opened(BLOCK), self._ledger.transaction():
            self._position = None
            yield
            moved = self._position is not None
            if self._position is not None:
                self._ledger.write(CURSOR, CHECKPOINT, self._position)
            else:
                self._ledger.check_owner()
        if moved:
            self._hand_back_if_stopping()

    def checkpoint(self, value: Any, every: float = 0.0) -> None:
        """Store the position, in the open block of `atomic` or by itself.

        Args:
            every: seconds. By itself, nothing is stored before so much time has passed since the last position.
        """
        if not 0 <= every <= LONGEST_EVERY:
            raise StepError(f"every= is from 0 to {LONGEST_EVERY} seconds, not {every!r}.")
        text = _encoded(value, "The value of the checkpoint")
        if self._open == BLOCK:
            self._position = text
            return
        self._refuse_inside()
        now = time.monotonic()
        if now < self._stored_at + every and not self.stopping():
            return
        with self._opened("run.checkpoint"):
            self._ledger.store(CHECKPOINT, text)
        self._stored_at = now
        self._hand_back_if_stopping()

    @property
    def cursor(self) -> Any:
        """The value of the last stored checkpoint; None if there is none."""
        stored = self._ledger.read(CURSOR, CHECKPOINT)
        return None if stored is None else _decoded(stored, CHECKPOINT)

    def _use(self, kind: str, name: str) -> str:
        key = check_name(name)
        if (kind, key) in self._used:
            raise StepError(f"The name {name!r} is used twice in this run. Upper and lower case are the same.")
        if kind == CURSOR and key == CHECKPOINT:
            raise StepError(f"The name {name!r} belongs to run.checkpoint.")
        if len(self._used) >= MOST_STEPS:
            raise StepError(f"A run has at most {MOST_STEPS:,} steps. For many items, use run.each.")
        self._refuse_inside()
        self._used.add((kind, key))
        return key

    def _refuse_inside(self) -> None:
        if self._open:
            raise StepError(f"{self._open} is not finished: a step inside a step would be stored without it.")

    @contextmanager
    def _opened(self, what: str) -> Iterator[None]:
        self._refuse_inside()
        self._open = what
        try:
            yield
        finally:
            self._open = ""

    def _hand_back_if_stopping(self) -> None:
        if self.stopping():
            self.handed_back = HandedBack("The consumer stops. The next attempt goes on from here.")
            raise self.handed_back


def _encoded(value: Any, subject: str) -> str:
    try:
        return encode(value)
    except json_bounds.NotStorable as error:
        raise StepError(f"{subject} {error}") from None


def _decoded(text: str, name: str) -> Any:
    """The stored value. A value that plain SQL has damaged is an error: work would be done twice without it.

    Raises:
        StepError: the text is not JSON.
    """
    try:
        return json_bounds.loads(text) if text else None
    except json_bounds.NotStorable as error:
        raise StepError(f"What is stored for {name!r} {error}") from None
