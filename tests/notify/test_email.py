"""An e-mail is sent once, and each way to fail says whether the recipient may have a copy."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from scheduling.notify import email
from scheduling.notify.email import Letter, Mailer, NotSent, Refused, Unreachable, Unsure
from tests.notify.mail_server import Mailbox, mail_server, use

LETTER = Letter("Grüße ✓", "The text.\n", "<p>The text.</p>", [("a.csv", b"x,y\r\n", "text/csv")])


@pytest.fixture
def mailbox(settings: Any) -> Iterator[Mailbox]:
    """Provide a mail server that Django's settings name."""
    with mail_server() as found:
        use(settings, found)
        yield found


def test_a_letter_arrives_with_both_texts_and_its_attachment(mailbox: Mailbox) -> None:
    with Mailer() as mailer:
        mailer.send("anna@example.com", LETTER, "<one@example.com>")
    (message,) = mailbox.to("anna@example.com")
    assert (message["Subject"], message["From"], message["To"]) == ("Grüße ✓", "cron@example.com", "anna@example.com")
    assert (message["Message-ID"], message["Auto-Submitted"]) == ("<one@example.com>", "auto-generated")
    parts = {part.get_content_type(): part for part in message.walk()}
    # Django 6 adds a line end.
    assert parts["text/plain"].get_payload(decode=True).strip() == b"The text."
    assert parts["text/html"].get_payload(decode=True).strip() == b"<p>The text.</p>"
    assert (parts["text/csv"].get_filename(), parts["text/csv"].get_payload(decode=True)) == ("a.csv", b"x,y\r\n")


@pytest.mark.parametrize(
    "address", ["", "no address", "a@b\nBcc: c@example.com", "a@b.c\r\n", "x" * 300 + "@example.com"]
)
def test_a_wrong_address_is_refused_before_the_server_is_asked(mailbox: Mailbox, address: str) -> None:
    with Mailer() as mailer, pytest.raises(Refused, match="not an e-mail address"):
        mailer.send(address, LETTER, "<one@example.com>")
    assert mailbox.accepted == []


def test_a_line_feed_in_the_subject_reaches_no_server(mailbox: Mailbox) -> None:
    with Mailer() as mailer, pytest.raises((Refused, Unsure)):
        mailer.send("anna@example.com", Letter("a\nBcc: x@example.com", "b"), "<one@example.com>")
    assert mailbox.accepted == []


def test_the_answer_of_the_server_decides(mailbox: Mailbox) -> None:
    mailbox.answers = {"gone@example.com": "550 no such user", "full@example.com": "452 mailbox full"}
    with Mailer() as mailer:
        with pytest.raises(Refused, match="The mail server answered 550: no such user"):
            mailer.send("gone@example.com", LETTER, "<1@example.com>")
        with pytest.raises(NotSent, match="answered 452: mailbox full"):
            mailer.send("full@example.com", LETTER, "<2@example.com>")
        mailer.send("anna@example.com", LETTER, "<3@example.com>")  # the others are not affected
    assert [address for address, _message in mailbox.accepted] == ["anna@example.com"]


def test_without_a_server_nothing_is_sent(mailbox: Mailbox, settings: Any) -> None:
    settings.EMAIL_PORT = 1
    with Mailer() as mailer, pytest.raises(Unreachable, match="The mail server cannot be used"):
        mailer.send("anna@example.com", LETTER, "<1@example.com>")


@pytest.mark.parametrize("way", ["hangs", "drops"])
def test_without_an_answer_the_recipient_may_have_a_copy(
    mailbox: Mailbox, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    monkeypatch.setattr(email, "MOST_SECONDS", 1.0)
    setattr(mailbox, way, True)
    with Mailer() as mailer:
        with pytest.raises(Unsure):
            mailer.send("anna@example.com", LETTER, "<1@example.com>")
        setattr(mailbox, way, False)
        mailer.send("ben@example.com", LETTER, "<2@example.com>")
    assert [address for address, _message in mailbox.accepted] == ["anna@example.com", "ben@example.com"]


def test_the_time_limit_is_shorter_than_the_lease(settings: Any) -> None:
    settings.CRON_LEASE_SECONDS, settings.EMAIL_TIMEOUT = 6, None
    assert email.time_limit() == 4
    settings.CRON_LEASE_SECONDS = 3_600
    assert email.time_limit() == email.MOST_SECONDS
    settings.EMAIL_TIMEOUT = 3
    assert email.time_limit() == 3


def test_a_message_id_is_valid_and_always_the_same(settings: Any) -> None:
    settings.CRON_SITE_URL = "https://cron.example.com:8443/x"
    assert email.message_id("reminder 7/ä") == "<reminder-7--@cron.example.com>"
    assert email.message_id("reminder 7/ä") == email.message_id("reminder 7/ä")
