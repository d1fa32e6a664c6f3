"""One function sends through a channel of any kind. A retry reaches only the addresses that are left."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from scheduling.models import Channel
from scheduling.models.channel import MOST_ADDRESSES
from scheduling.notify import email, email_list
from scheduling.notify.address_notes import AddressNotes
from scheduling.notify.channels import send
from scheduling.notify.delivery import Letter, NotSent, Refused, Unsure
from tests.notify.chat_server import ChatServer
from tests.notify.mail_server import Mailbox, mail_server, use

LETTER = Letter("Too many failures\nBcc: x@example.com", "12 failures wait.", "<p>12 failures</p>")
FACTS = {"event": "alert.started", "rule": "failed inbox", "seen": "12 failures wait."}
SECRET = "cronhook_of_the_tests"


@pytest.fixture
def mailbox(settings: Any) -> Iterator[Mailbox]:
    """Provide a mail server that Django's settings name."""
    with mail_server() as found:
        use(settings, found)
        yield found


def team(*names: str) -> Channel:
    """Return a channel of e-mail addresses, which is not stored."""
    return Channel(name="team", kind="email", recipients="\n".join(f"{name}@example.com" for name in names))


def accepted(mailbox: Mailbox) -> list[str]:
    return [address.partition("@")[0] for address, _message in mailbox.accepted]


def test_a_chat_gets_the_text_and_a_webhook_the_facts(chat: ChatServer) -> None:
    send(Channel(name="room", kind="chat", address=f"json://{chat.host}/room"), LETTER, FACTS, "alert-7")
    send(Channel(name="hook", kind="webhook", address=f"http://{chat.host}/hook", secret=SECRET), LETTER, FACTS, "a-7")
    assert b"12 failures wait." in chat.at("/room")[0]
    found = json.loads(chat.at("/hook")[0])
    assert FACTS.items() <= found.items()
    assert (found["version"], found["id"], found["text"]) == (1, "a-7", "12 failures wait.")


def test_each_address_gets_its_own_e_mail(mailbox: Mailbox) -> None:
    send(team("anna", "ben", "Anna"), LETTER, FACTS, "alert-7")
    assert accepted(mailbox) == ["anna", "ben"]
    first, second = (message for _address, message in mailbox.accepted)
    assert (first["To"], first["Subject"]) == ("anna@example.com", "Too many failures Bcc: x@example.com")
    assert first["Message-ID"] != second["Message-ID"]
    assert "12 failures</p>" in first.get_body(("html",)).get_content()


def test_a_retry_mails_only_to_those_who_are_left(mailbox: Mailbox) -> None:
    mailbox.answers = {"gone@example.com": "550 no such user", "full@example.com": "452 mailbox full"}
    row = team("anna", "full", "gone", "ben")
    with pytest.raises(NotSent) as later:
        send(row, LETTER, FACTS, "alert-7")
    assert str(later.value).startswith("2 of 4 addresses did not get the message. gone@example.com: ")
    assert "full@example.com: The mail server answered 452" in str(later.value)
    assert (later.value.done, later.value.retry_after) == ({"anna@example.com", "ben@example.com"}, None)
    del mailbox.answers["full@example.com"]
    with pytest.raises(Refused) as refused:
        send(row, LETTER, FACTS, "alert-7", later.value.done)
    assert str(refused.value) == (
        "1 of 4 addresses cannot get the message. gone@example.com: The mail server answered 550: no such user"
    )
    assert refused.value.done == {"anna@example.com", "ben@example.com", "full@example.com"}
    assert accepted(mailbox) == ["anna", "ben", "full"]


def test_the_message_id_belongs_to_the_delivery_and_the_address(
    mailbox: Mailbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(email, "MOST_SECONDS", 1.0)
    mailbox.drops = True
    with pytest.raises(Unsure, match="1 of 1 addresses did not get the message"):
        send(team("anna"), LETTER, FACTS, "alert-7")
    mailbox.drops = False
    send(team("ben", "anna"), LETTER, FACTS, "alert-7")
    send(team("anna"), LETTER, FACTS, "alert-8")
    ids = [message["Message-ID"] for message in mailbox.to("anna@example.com")]
    assert ids[0] == ids[1] != ids[2]


def test_a_mail_server_that_is_away_is_asked_once(mailbox: Mailbox, settings: Any) -> None:
    settings.EMAIL_PORT = 1
    with pytest.raises(NotSent) as later:
        send(team("anna", "ben", "carl"), LETTER, FACTS, "alert-7")
    start = "3 of 3 addresses did not get the message. anna@example.com: The mail server cannot be used: "
    assert str(later.value).startswith(start)
    assert str(later.value).endswith("ben@example.com: The next try sends it; carl@example.com: The next try sends it")


def test_a_mail_server_that_drops_each_message_is_left_after_two(mailbox: Mailbox) -> None:
    mailbox.drops = True
    with pytest.raises(Unsure) as unsure:
        send(team("anna", "ben", "carl", "dora"), LETTER, FACTS, "alert-7")
    assert accepted(mailbox) == ["anna", "ben"]
    assert AddressNotes.read(unsure.value.done) == AddressNotes(once={"anna@example.com", "ben@example.com"})


def test_after_a_time_no_further_e_mail_is_begun(mailbox: Mailbox) -> None:
    with pytest.raises(NotSent, match="2 of 2 addresses did not get the message") as later:
        email_list.send(["a@example.com", "b@example.com"], LETTER, "alert-7", most_seconds=-1)
    assert later.value.done == set()
    assert accepted(mailbox) == []


@pytest.mark.parametrize(
    ("columns", "says"),
    [
        ({"kind": "nonsense"}, "The channel has no known kind."), ({"kind": ""}, "The channel has no known kind."),
        ({"kind": "email", "recipients": None}, "The channel has no e-mail address."),
        ({"kind": "email", "recipients": " \n\u2028\r\n"}, "The channel has no e-mail address."),
        ({"kind": "email", "recipients": "a@b@c\x00"}, "This is not an e-mail address: "),
        (
            {"kind": "email", "recipients": "\n".join(f"a{number}@example.com" for number in range(300_000))},
            f"The channel has more than {MOST_ADDRESSES} e-mail addresses.",
        ),
        ({"kind": "webhook", "address": "", "secret": SECRET}, "must begin with https:// or http://"),
        ({"kind": "webhook", "address": "https://example.com", "secret": None}, "The webhook has no secret."),
        ({"kind": "webhook", "address": None}, "must begin with https:// or http://"),
        ({"kind": "chat", "address": ""}, "This kind of address is not possible."),
        ({"kind": "chat", "address": None}, "This kind of address is not possible."),
    ],
)  # fmt: skip
def test_columns_that_plain_sql_has_written_are_refused(mailbox: Mailbox, columns: dict[str, Any], says: str) -> None:
    with pytest.raises(Refused) as refused:
        send(Channel(name="x", **columns), LETTER, FACTS, "alert-7")
    assert says in str(refused.value)
    assert accepted(mailbox) == []
