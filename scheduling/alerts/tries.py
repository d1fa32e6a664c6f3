"""The tries to send a message that are under way. Each has a thread of its own, and none of them needs the database."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any, Generic, TypeVar

from scheduling.core import delivery_sentences as say
from scheduling.core.alert_retry import SENDING_SECONDS
from scheduling.logs import get_logger
from scheduling.models import Channel
from scheduling.notify import channels
from scheduling.notify.delivery import Letter, NotSent, Refused, Undelivered, Unsure
from scheduling.processes.server_clock import elapsed_seconds

log = get_logger(__name__)

MOST_AT_ONCE = 8
"""So many channels are called at once. One that hangs delays no other one, and ends by its own time limit."""

Claim = TypeVar("Claim")


@dataclass(frozen=True)
class Try:
    """One try to send a message.

    Args:
        done: the addresses of a channel of e-mail addresses that have the message already.
    """

    channel: Channel
    letter: Letter
    facts: Mapping[str, Any]
    delivery_id: str
    done: Collection[str] = ()


@dataclass(frozen=True)
class Ending:
    """How a try has ended.

    Args:
        error: why the message was not sent: a sentence; empty if it was sent.
        given_up: whether no later try can work.
        unsure: whether the message may have arrived nevertheless.
        retry_after: after how many seconds the server wants the next try, if it has said so.
        done: the addresses that have the message.
    """

    error: str = ""
    given_up: bool = False
    unsure: bool = False
    retry_after: float | None = None
    done: Collection[str] = field(default=())


Send = Callable[[Try], None]
"""Sends the message. It raises the errors of `notify.delivery`."""


def send(one: Try) -> None:
    """Send the message through its channel."""
    channels.send(one.channel, one.letter, one.facts, one.delivery_id, one.done)


@dataclass
class _UnderWay(Generic[Claim]):
    claim: Claim
    began: float
    given_up: bool = False


class Tries(Generic[Claim]):
    """At most so many tries at once, and at most one for each channel.

    The threads are daemons: a server that hangs does not keep the process from stopping. A try that never ends is given
    up after its time limit. It then takes no room, but its channel is not called again while it hangs. So a mail
    backend without a time limit costs one thread for each channel.

    Args:
        ended: called when a try has ended: in the thread of the try, or in that of the caller if it has none.
        seconds: the time limit. All channels of this project have shorter ones.
    """

    def __init__(
        self,
        ended: Callable[[], None],
        most: int = MOST_AT_ONCE,
        send: Send = send,
        seconds: float = SENDING_SECONDS,
        elapsed: Callable[[], float] = elapsed_seconds,
    ) -> None:
        self._tell, self._most, self._send, self._seconds, self._elapsed = ended, most, send, seconds, elapsed
        self._under_way: dict[int, _UnderWay[Claim]] = {}
        self._endings: SimpleQueue[tuple[int, Ending]] = SimpleQueue()

    @property
    def has_room(self) -> bool:
        """Whether another try can begin."""
        return sum(not one.given_up for one in self._under_way.values()) < self._most

    @property
    def idle(self) -> bool:
        """Whether no ending is to come."""
        return all(one.given_up for one in self._under_way.values())

    def calls(self, channel: int) -> bool:
        """Whether a message is being sent to this channel."""
        return channel in self._under_way

    def begin(self, claim: Claim, one: Try) -> None:
        """Begin a try in a thread. If the process has no room for another thread, the try ends at once, unsent.

        Args:
            claim: comes back with the ending.
        """
        try:
            Thread(target=self._run, args=(one,), name="alerts-message", daemon=True).start()
        except RuntimeError as error:
            self._endings.put((one.channel.pk, Ending(say.DEFECT.format(error=str(error)), done=one.done)))
            self._tell()
        self._under_way[one.channel.pk] = _UnderWay(claim, self._elapsed())

    def ended(self) -> Iterator[tuple[Claim, Ending]]:
        """The tries that have ended since the last call, and those that are given up."""
        while True:
            try:
                channel, ending = self._endings.get_nowait()
            except Empty:
                break
            one = self._under_way.pop(channel)
            if not one.given_up:
                yield one.claim, ending
        for one in self._under_way.values():
            if not one.given_up and self._elapsed() - one.began >= self._seconds:
                one.given_up = True
                yield one.claim, Ending(say.TRY_LATE.format(seconds=f"{self._seconds:g}"), unsure=True)

    def _run(self, one: Try) -> None:
        ending = Ending(say.TRY_LOST.format(), unsure=True)
        try:
            ending = self._end(one)
        finally:
            self._endings.put((one.channel.pk, ending))
            self._tell()

    def _end(self, one: Try) -> Ending:
        try:
            self._send(one)
        except Undelivered as error:
            wait = error.retry_after if isinstance(error, NotSent) else None
            given_up, unsure = isinstance(error, Refused), isinstance(error, Unsure)
            return Ending(str(error) or type(error).__name__, given_up, unsure, wait, error.done or one.done)
        except Exception as defect:
            log.exception("A message of alerts cannot be sent")
            return Ending(say.DEFECT.format(error=f"{type(defect).__name__}: {defect}"), done=one.done)
        return Ending(done=one.done)
