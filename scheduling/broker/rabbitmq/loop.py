"""Loop: the thread in which all of pika runs, so that heartbeats go on whatever the caller does."""

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


class Loop:
    """A thread with a selector. `call` may be used from any thread; everything else from inside.

    The thread is a daemon: a caller that forgets to close does not keep the process.
    """

    def __init__(self, name: str) -> None:
        self.selector = IOLoop()
        self.on_crash: list[Callable[[BaseException], None]] = []
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def call(self, function: Callable[[], Any]) -> None:
        """Have `function` called in the thread, soon."""
        self.selector.add_callback_threadsafe(function)

    def later(self, seconds: float, function: Callable[[], Any]) -> Any:
        """Have `function` called after a while; the result can be given to `cancel`."""
        return self.selector.call_later(seconds, function)

    def cancel(self, timer: Any) -> None:
        """Forget a timer, if it is one."""
        if timer is not None:
            self.selector.remove_timeout(timer)

    def ask(self, question: Callable[[Future[T]], Any], seconds: float, what: str) -> T:
        """Call `question` in the thread and wait for its answer.

        Raises:
            BrokerUnavailable: no answer within `seconds`.
            BrokerError: as answered.
        """
        answer: Future[T] = Future()
        self.call(lambda: question(answer))
        try:
            return answer.result(seconds)
        except FutureTimeout:
            raise BrokerUnavailable(f"The broker did not answer within {seconds:.0f} s ({what}).") from None

    def stop(self, seconds: float = 5.0) -> None:
        """End the thread; what was called before is done first."""
        self._stopping = True
        self.call(self.selector.stop)
        if self._thread is not threading.current_thread():
            self._thread.join(seconds)

    def _run(self) -> None:
        while not self._stopping:
            try:
                self.selector.start()
            except Exception as error:
                # Some frames of RabbitMQ 4.3 raise inside pika. Connections start anew, the thread goes on.
                log.exception("The broker thread failed; its connections are made anew")
                for tell in self.on_crash:
                    tell(error)
        self.selector.close()


def resolve(answer: Future[T], value: T) -> None:
    """Answer once; a later answer is dropped."""
    if not answer.done():
        answer.set_result(value)


def refuse(answer: Future[Any], error: BaseException) -> None:
    """Answer with an error, once."""
    if not answer.done():
        answer.set_exception(error)
