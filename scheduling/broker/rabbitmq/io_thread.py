"""The thread in which pika runs. In this thread, pika sends heartbeats even while the caller is busy."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from typing import Any, TypeVar

from pika.adapters.select_connection import IOLoop

from scheduling.broker.base import BrokerUnavailable
from scheduling.logs import get_logger

log = get_logger(__name__)

T = TypeVar("T")


class IoThread:
    """A thread that runs pika's event loop (`selector`).

    Other threads may use `call`, `ask` and `stop`. Only code in this thread may use `later` and `cancel`. The thread is
    a daemon, so the process can end even if the caller forgets to call `stop`.
    """

    def __init__(self, name: str) -> None:
        self.selector = IOLoop()
        self.on_crash: list[Callable[[BaseException], None]] = []
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def call(self, function: Callable[[], Any]) -> None:
        """Call `function` in the thread as soon as possible."""
        self.selector.add_callback_threadsafe(function)

    def later(self, seconds: float, function: Callable[[], Any]) -> Any:
        """Call `function` after some seconds; returns a timer for `cancel`."""
        return self.selector.call_later(seconds, function)

    def cancel(self, timer: Any) -> None:
        """Cancel a timer; None is ignored."""
        if timer is not None:
            self.selector.remove_timeout(timer)

    def ask(self, question: Callable[[Future[T]], Any], seconds: float, what: str) -> T:
        """Call `question` in the thread with a future; returns the result that the future gets.

        Raises:
            BrokerUnavailable: there was no answer within `seconds`.
            BrokerError: the future got this error.
        """
        answer: Future[T] = Future()
        self.call(lambda: question(answer))
        try:
            return answer.result(seconds)
        except FutureTimeout:
            raise BrokerUnavailable(f"The broker did not answer within {seconds:.0f} s ({what}).") from None

    def stop(self, seconds: float = 5.0) -> None:
        """End the thread. The thread first runs the functions that were already given to `call`."""
        self._stopping = True
        self.call(self.selector.stop)
        if self._thread is not threading.current_thread():
            self._thread.join(seconds)

    def _run(self) -> None:
        while not self._stopping:
            try:
                self.selector.start()
            except Exception as error:
                # Some frames of RabbitMQ 4.3 raise an error inside pika. The thread goes on and makes new connections.
                log.exception("The broker thread failed; its connections are made anew")
                for tell in self.on_crash:
                    tell(error)
        self.selector.close()


def resolve(answer: Future[T], value: T) -> None:
    """Set the result of a future, unless the future is done already."""
    if not answer.done():
        answer.set_result(value)


def refuse(answer: Future[Any], error: BaseException) -> None:
    """Set the error of a future, unless the future is done already."""
    if not answer.done():
        answer.set_exception(error)
