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
from scheduling.notify.delivery import Letter, NotSent, Refused, Undelivered, Unsure, UnsureOfSome
from scheduling.processes.server_clock import elapsed_seconds

log = get_logger(__name__)

MOST_AT_ONCE = 8
"""So many channels are called at once. One that hangs delays no other one, and ends by its own time limit."""

CALLED_AGAIN_SECONDS = 900.0
"""So long after a try was given up, its channel is called again, although the try may still hang."""

MOST_HANGING = 8
"""With so many tries that hang, none of their channels is called again."""

Claim = TypeVar("Claim")


@dataclass(frozen=True)
class Try:
    """One try to send a message.

    Args:
        done: what is known of the addresses of a channel of e-mail addresses (`notify.address_notes`).
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
        unsure: whether the message may have arrived nevertheless. It is false if `done` says it of single addresses.
        retry_after: after how many seconds the server wants the next try, if it has said so.
        done: what is known of the addresses now.
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


@dataclass(eq=False)
class _UnderWay(Generic[Claim]):
    claim: Claim
    channel: int
    done_if_lost: Collection[str]
    began: float
    given_up_at: float = 0.0


class Tries(Generic[Claim]):
    """At most so many tries at once, and at most one for each channel.

    The threads are daemons: a server that hangs does not keep the process from stopping. A try that never ends is given
    up after its time limit. It then takes no room, and its channel is called again some time later: the server may
    answer by then. Such a second call costs a further thread. So it is not made while MOST_HANGING threads hang. A mail
    backend without a time limit then costs at most so many threads, or one for each of its channels.

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
        self._hanging: list[_UnderWay[Claim]] = []
        """The tries that were given up and have not ended."""
        self._endings: SimpleQueue[tuple[_UnderWay[Claim], Ending]] = SimpleQueue()

    @property
    def has_room(self) -> bool:
        """Whether another try can begin."""
        return len(self._under_way) < self._most

    @property
    def idle(self) -> bool:
        """Whether no ending is to come."""
        return not self._under_way

    def calls(self, channel: int) -> bool:
        """Whether a message is being sent to this channel, or a try hangs and it is too early for another one."""
        given_up = [one.given_up_at for one in self._hanging if one.channel == channel]
        if channel in self._under_way or not given_up:
            return channel in self._under_way
        if self._elapsed() - max(given_up) < CALLED_AGAIN_SECONDS:
            return True
        again = {one.channel for one in self._hanging} & self._under_way.keys()
        return len(self._hanging) + len(again) >= MOST_HANGING

    def begin(self, claim: Claim, one: Try) -> None:
        """Begin a try in a thread. If the process has no room for another thread, the try ends at once, unsent.

        Args:
            claim: comes back with the ending.
        """
        begun = _UnderWay(claim, one.channel.pk, channels.done_if_lost(one.channel, one.done), self._elapsed())
        self._under_way[one.channel.pk] = begun
        try:
            Thread(target=self._run, args=(begun, one), name="alerts-message", daemon=True).start()
        except RuntimeError as error:
            self._endings.put((begun, Ending(say.DEFECT.format(error=str(error)), done=one.done)))
            self._tell()

    def ended(self) -> Iterator[tuple[Claim, Ending]]:
        """The tries that have ended since the last call, and those that are given up."""
        while True:
            try:
                one, ending = self._endings.get_nowait()
            except Empty:
                break
            if one in self._hanging:
                self._hanging.remove(one)
                continue
            del self._under_way[one.channel]
            yield one.claim, ending
        now = self._elapsed()
        for one in [one for one in self._under_way.values() if now - one.began >= self._seconds]:
            del self._under_way[one.channel]
            one.given_up_at = now
            self._hanging.append(one)
            said = say.TRY_LATE.format(seconds=f"{self._seconds:g}")
            yield one.claim, Ending(said, unsure=True, done=one.done_if_lost)

    def _run(self, begun: _UnderWay[Claim], one: Try) -> None:
        ending = Ending(say.TRY_LOST.format(), unsure=True, done=begun.done_if_lost)
        try:
            ending = self._end(one)
        finally:
            self._endings.put((begun, ending))
            self._tell()

    def _end(self, one: Try) -> Ending:
        try:
            self._send(one)
        except Undelivered as error:
            wait = error.retry_after if isinstance(error, NotSent) else None
            given_up = isinstance(error, Refused)
            unsure = isinstance(error, Unsure) and not isinstance(error, UnsureOfSome)
            return Ending(str(error) or type(error).__name__, given_up, unsure, wait, error.done or one.done)
        except Exception as defect:
            log.exception("A message of alerts cannot be sent")
            return Ending(say.DEFECT.format(error=f"{type(defect).__name__}: {defect}"), done=one.done)
        return Ending(done=one.done)
