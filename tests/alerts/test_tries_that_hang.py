"""A try that never ends takes no room, and does not keep its channel from hearing of alerts for ever."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import pytest

from scheduling.alerts.tries import CALLED_AGAIN_SECONDS, MOST_HANGING, Ending, Tries, Try
from scheduling.core.alert_retry import SENDING_SECONDS
from scheduling.models import AlertMessage, Channel
from scheduling.notify.delivery import Letter, NotSent
from tests.alerts.support import Clock, alert, channel, send_all, sender, states, told
from tests.support import wait_for


@dataclass
class Hang:
    """Sends of which the first ones never end, and the seconds that the tries count.

    Args:
        channels: their sends hang.
    """

    channels: set[int] = field(default_factory=set)
    seconds: float = 0.0
    called: list[Try] = field(default_factory=list)
    release: threading.Event = field(default_factory=threading.Event)

    def send(self, one: Try) -> None:
        """Send, or hang."""
        self.called.append(one)
        if one.channel.pk in self.channels:
            self.release.wait(60)

    def tries(self, **values: Any) -> Tries[int]:
        """Tries that send so. The claim of each is the channel's primary key."""
        return Tries(lambda: None, send=self.send, elapsed=lambda: self.seconds, **values)


@pytest.fixture
def hang() -> Iterator[Hang]:
    """Let nothing hang after the test."""
    found = Hang()
    yield found
    found.release.set()


def begin(tries: Tries[int], *channels: int, done: tuple[str, ...] = ()) -> None:
    for pk in channels:
        tries.begin(pk, Try(Channel(pk=pk), Letter("subject", "text"), {}, f"d{pk}", done))


def give_up(tries: Tries[int], hang: Hang) -> list[tuple[int, Ending]]:
    """Let the time limit of the tries pass."""
    hang.seconds += SENDING_SECONDS
    return list(tries.ended())


@pytest.mark.django_db
def test_it_takes_no_room(hang: Hang) -> None:
    """Such as a mail backend of the project without a time limit."""
    clock, quick = Clock(), channel("json://host/", "quick")
    by = sender(clock, send=hang.send, most=2, elapsed=lambda: hang.seconds)
    hanging = [channel("json://host/", f"hangs {number}") for number in range(2)]
    hang.channels = {each.pk for each in hanging}
    for number, each in enumerate([*hanging, quick]):
        told(each, alert(number))
    by.begin(lambda: True)
    by.record()
    assert states() == ["sending", "sending", "waiting"]
    hang.seconds = SENDING_SECONDS
    by.record()
    send_all(by)
    assert states() == ["waiting", "waiting", "sent"]


def test_its_channel_is_called_again_some_time_later(hang: Hang) -> None:
    hang.channels, tries = {1}, hang.tries()
    begin(tries, 1)
    assert [claim for claim, _ending in give_up(tries, hang)] == [1]
    assert tries.idle
    hang.seconds += CALLED_AGAIN_SECONDS - 1
    assert tries.calls(1), "too early"
    hang.seconds += 1
    assert not tries.calls(1)
    hang.channels.clear()  # the server works again
    begin(tries, 1)
    found: list[tuple[int, Ending]] = []
    wait_for(lambda: bool(found.extend(tries.ended()) or found), "the second try ends")
    assert found[0][1].error == ""


def test_its_end_is_no_ending_of_the_next_try(hang: Hang) -> None:
    hang.channels, tries = {1}, hang.tries()
    begin(tries, 1)
    give_up(tries, hang)
    hang.seconds += CALLED_AGAIN_SECONDS
    first, second = hang.release, threading.Event()
    hang.release = second
    begin(tries, 1)
    wait_for(lambda: len(hang.called) == 2, "the second try has begun")
    first.set()
    wait_for(lambda: list(tries.ended()) == [] and not tries._hanging, "the first try has ended")
    assert tries.calls(1), "the second one is under way"
    second.set()
    wait_for(lambda: [claim for claim, _ending in tries.ended()] == [1], "it ends, too")


def test_so_many_threads_hang_at_most(hang: Hang) -> None:
    hang.channels, tries = {1, 2, 3}, hang.tries()
    for _turn in range(MOST_HANGING):
        for pk in hang.channels:
            if not tries.calls(pk):
                begin(tries, pk)
        give_up(tries, hang)
        hang.seconds += CALLED_AGAIN_SECONDS
    assert len(hang.called) == MOST_HANGING
    assert not tries.calls(4), "a channel that did not hang is called"
    hang.release.set()
    wait_for(lambda: not list(tries.ended()) and not tries.calls(1), "they have ended, so it is called again")


def test_an_address_that_has_the_message_does_not_get_it_after_such_a_try(hang: Hang) -> None:
    tries = hang.tries()
    hang.channels = {1}
    begin(tries, 1, done=("anna@example.com",))
    ((_claim, ending),) = give_up(tries, hang)
    assert (ending.unsure, list(ending.done)) == (True, ["anna@example.com"])


def test_nor_after_a_try_that_was_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    def end_the_thread(_one: Try) -> None:
        raise SystemExit

    class Quiet(threading.Thread):
        """Keeps the exit from pytest."""

        def run(self) -> None:
            with suppress(SystemExit):
                super().run()

    monkeypatch.setattr("scheduling.alerts.tries.Thread", Quiet)
    tries: Tries[int] = Tries(lambda: None, send=end_the_thread)
    begin(tries, 1, done=("anna@example.com",))
    found: list[tuple[int, Ending]] = []
    wait_for(lambda: bool(found.extend(tries.ended()) or found), "it is lost")
    assert (found[0][1].error, list(found[0][1].done)) == ("The try was lost.", ["anna@example.com"])


@pytest.mark.django_db
def test_an_ending_that_knows_of_no_address_takes_none_off_the_record() -> None:
    clock = Clock()
    told(channel("", kind="email", recipients="anna@example.com\nben@example.com"), alert(1))
    known = [{"anna@example.com"}, {"ben@example.com"}]
    seen: list[list[str]] = []

    def send(one: Try) -> None:
        seen.append(sorted(one.done))
        error = NotSent("later")
        error.done = frozenset(known[len(seen) - 1])
        raise error

    by = sender(clock, send=send)
    send_all(by)
    clock.pass_seconds(60)
    send_all(by)
    assert seen == [[], ["anna@example.com"]]
    assert AlertMessage.objects.get().done == ["anna@example.com", "ben@example.com"]
