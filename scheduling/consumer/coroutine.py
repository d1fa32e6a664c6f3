"""Runs the coroutine of an `async def` handler in an event loop of its own. The loop ends with the run."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Coroutine, Generator
from functools import partial
from types import FrameType
from typing import Any

from asgiref.sync import ThreadSensitiveContext, sync_to_async
from django.db import connections

from scheduling.consumer.terminated import Terminated, on_terminate, terminable
from scheduling.core.outcome import SoftTimeLimit


def run_coroutine(coroutine: Coroutine[Any, Any, Any], soft_limit: float | None = None) -> Any:
    """Run the coroutine to its end; returns its result. After `soft_limit` seconds, it gets `SoftTimeLimit`.

    The exceptions are raised in the coroutine at the `await` where it waits, also `Terminated` at SIGTERM. A coroutine
    that blocks its loop is not interrupted.
    """
    _close_connections()
    try:
        return asyncio.run(_Interruptible(coroutine).main(soft_limit))
    finally:
        terminable(True)
        if sys.version_info < (3, 14):
            # `asyncio.run` leaves a mark that it has run, and `asyncio.get_event_loop` of the next run would raise.
            asyncio.set_event_loop_policy(None)


def _close_connections() -> None:
    """Close the database connections of this thread. The queries of the coroutine have a thread of their own.

    SQLite keeps the file of a connection open while another connection of the process has a lock on it. The child would
    then have one more open file after the run, and would be replaced.
    """
    for connection in connections.all(initialized_only=True):
        if not connection.in_atomic_block:  # a test runs the coroutine inside its transaction
            connection.close()


class _Interruptible:
    """Awaits a coroutine, and can raise an exception in it.

    An exception that a signal handler raises would stop the event loop at any place, and the `finally` blocks of the
    coroutine would run without it. So the task is cancelled, and the coroutine gets the exception instead of the
    `CancelledError`.
    """

    def __init__(self, coroutine: Coroutine[Any, Any, Any]) -> None:
        self._coroutine = coroutine
        self._task: asyncio.Task[Any] | None = None
        self._interrupt: Callable[[], BaseException] | None = None

    async def main(self, soft_limit: float | None) -> Any:
        self._task, loop = asyncio.current_task(), asyncio.get_running_loop()

        def ask(_number: int, _frame: FrameType | None) -> None:
            if loop.is_closed():
                raise Terminated
            self.interrupt(Terminated)
            loop.call_soon_threadsafe(lambda: None)  # wakes the loop up

        on_terminate(ask)
        if soft_limit is not None:
            loop.call_later(soft_limit, self.interrupt, partial(SoftTimeLimit, soft_limit))
        async with ThreadSensitiveContext():  # Django's queries run in a thread, which ends here
            result, error = None, None
            try:
                result = await self
            except BaseException as raised:
                error = raised
            await sync_to_async(connections.close_all)()  # in a `finally` block, it would add frames to the traceback
            if error is not None:
                raise error
            return result

    def interrupt(self, error: Callable[[], BaseException]) -> None:
        """Raise an exception in the coroutine, as soon as it waits."""
        if self._task is not None:
            self._interrupt = error
            self._task.cancel()

    def __await__(self) -> Generator[Any, Any, Any]:
        steps = self._coroutine.__await__()
        step: Callable[[], Any] = partial(next, steps)
        while True:
            try:
                awaited = step()
            except StopIteration as end:
                return end.value
            try:
                step = partial(steps.send, (yield awaited))
            except BaseException as error:
                step = partial(steps.throw, self._exchanged(error))

    def _exchanged(self, error: BaseException) -> BaseException:
        if self._interrupt is None or self._task is None or not isinstance(error, asyncio.CancelledError):
            return error
        wanted, self._interrupt = self._interrupt(), None
        self._task.uncancel()  # the coroutine may go on, for example with `asyncio.timeout`
        return wanted
