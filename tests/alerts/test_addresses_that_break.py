"""An address whose connection breaks gets a message twice at most, and keeps no other address from it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from scheduling.core.alert_retry import LONGEST_SECONDS, SENDING_SECONDS
from scheduling.models import AlertMessage, Channel
from scheduling.notify.address_notes import AddressNotes
from scheduling.notify.channels import done_if_lost
from tests.alerts.support import Clock, alert, channel, send_all, sender, states, told
from tests.notify.mail_server import Mailbox, mail_server, use

pytestmark = pytest.mark.django_db

A, B, C, D = (f"{name}@example.com" for name in "abcd")
COME_TWICE = "This message may come twice"


@pytest.fixture
def mailbox(settings: Any) -> Iterator[Mailbox]:
    """Provide a mail server that Django's settings name."""
    with mail_server() as found:
        use(settings, found)
        yield found


@pytest.fixture
def team() -> Channel:
    """Provide a channel of four addresses that has not been told of an alert."""
    found = channel("", kind="email", recipients="\n".join((A, B, C, D)))
    told(found, alert(1))
    return found


def send_for_hours(clock: Clock) -> None:
    by = sender(clock)
    for _turn in range(8):
        send_all(by)
        clock.pass_seconds(LONGEST_SECONDS)


def copies(mailbox: Mailbox) -> dict[str, int]:
    return {address: len(mailbox.to(address)) for address in (A, B, C, D)}


def texts(mailbox: Mailbox, address: str) -> list[str]:
    return [str(message.get_payload()) for message in mailbox.to(address)]


def test_the_others_are_told(mailbox: Mailbox, team: Channel) -> None:
    mailbox.breaks = {A, B}
    send_for_hours(Clock())
    assert copies(mailbox) == {A: 2, B: 2, C: 1, D: 1}
    message = AlertMessage.objects.get()
    assert message.state == "given_up"
    assert message.error.startswith(f"2 of 4 addresses cannot get the message. {A}: Two tries ended without an answer.")
    assert B in message.error


def test_those_that_were_not_tried_come_first(mailbox: Mailbox, team: Channel) -> None:
    """A mail server that has not answered twice is left alone until the next try."""
    clock = Clock()
    mailbox.breaks = {A, B}
    send_all(sender(clock))
    assert copies(mailbox) == {A: 1, B: 1, C: 0, D: 0}
    clock.pass_seconds(LONGEST_SECONDS)
    send_all(sender(clock))
    assert copies(mailbox) == {A: 2, B: 2, C: 1, D: 1}


def test_only_the_repetition_says_that_it_may_come_twice(mailbox: Mailbox, team: Channel) -> None:
    clock = Clock()
    mailbox.breaks = {A, B}
    send_all(sender(clock))
    mailbox.breaks.clear()
    clock.pass_seconds(LONGEST_SECONDS)
    send_all(sender(clock))  # another process
    assert states() == ["sent"]
    assert copies(mailbox) == {A: 2, B: 2, C: 1, D: 1}
    assert [COME_TWICE in text for text in [*texts(mailbox, A), *texts(mailbox, C)]] == [False, True, False]


def test_a_broken_connection_after_a_lost_try_is_the_second_time(mailbox: Mailbox, team: Channel) -> None:
    """As after a process that was killed: each address may have the message by then."""
    clock = Clock()
    sender(clock, send=lambda one: None).begin(lambda: True)
    clock.pass_seconds(SENDING_SECONDS)
    mailbox.breaks = {A}
    send_for_hours(clock)
    assert copies(mailbox) == {A: 1, B: 1, C: 1, D: 1}
    assert [text.count(COME_TWICE) for text in texts(mailbox, B)] == [1]
    assert AlertMessage.objects.get().error.startswith(f"1 of 4 addresses cannot get the message. {A}: Two tries")


def test_a_lost_try_after_a_broken_connection_is_the_second_time(mailbox: Mailbox, team: Channel) -> None:
    clock = Clock()
    mailbox.breaks = {A, B}
    send_all(sender(clock))
    clock.pass_seconds(LONGEST_SECONDS)
    sender(clock, send=lambda one: None).begin(lambda: True)
    clock.pass_seconds(SENDING_SECONDS)
    mailbox.breaks.clear()
    send_for_hours(clock)
    assert copies(mailbox) == {A: 1, B: 1, C: 1, D: 1}
    assert states() == ["given_up"]


def test_a_try_without_an_end_may_have_reached_each_address_that_is_left(team: Channel) -> None:
    first = done_if_lost(team, [A])
    assert AddressNotes.read(first) == AddressNotes({A}, {B, C, D})
    second = done_if_lost(team, {*first, B})
    assert AddressNotes.read(second) == AddressNotes({A, B}, {B, C, D}, {C, D})
    assert AddressNotes.read(second).left(team.addresses) == [C, D]
    assert done_if_lost(Channel(kind="chat"), [A]) == [A]
    assert done_if_lost(Channel(kind="email"), [A]) == [A]
