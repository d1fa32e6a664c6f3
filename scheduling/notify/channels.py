"""Sends one message through one channel of any kind."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

from django.utils import timezone as clock

from scheduling.core import delivery_sentences as say
from scheduling.core.text import visible_text
from scheduling.models.channel import MOST_ADDRESSES, Channel
from scheduling.notify import chat, email_list, webhook
from scheduling.notify.delivery import Letter, Refused
from scheduling.notify.webhook_body import webhook_body

Kind = Channel.Kind

SUBJECT_LENGTH = 200
"""A longer subject is cut, in characters."""


def send(
    channel: Channel, letter: Letter, facts: Mapping[str, Any], delivery_id: str, done: Collection[str] = (),
    most_seconds: float = email_list.MOST_SECONDS,
) -> None:  # fmt: skip
    """Send one message through a channel.

    A chat gets the subject and the text, a webhook the facts, and each e-mail address the whole letter. No table but
    that of the channel is read or written. It takes at most `time_limit.time_limit()` seconds for a chat or a webhook,
    and for e-mail addresses `most_seconds` and one more e-mail (`email_list.LAST_SECONDS`). A mail backend that is not
    made from Django's SMTP backend must have a time limit of its own.

    Args:
        facts: what a program wants to know, as an object of JSON; see `webhook_body`.
        delivery_id: names this message in each try; see `webhook.send`.
        done: what is known of the e-mail addresses: all `done` of the errors of the earlier tries.

    Raises:
        Refused: no later try can work, until a person changes the channel. Of several e-mail addresses, some may have
            the message.
        NotSent: a later try can work. `retry_after` says after how many seconds, if the server has said so.
        Unsure: the message may have arrived. A later try sends it again, with the same delivery id or Message-ID.
    """
    # A line feed would begin another header of an e-mail, and the mail server would never get it.
    letter = replace(letter, subject=visible_text(" ".join(letter.subject.split()), SUBJECT_LENGTH))
    match channel.kind:
        case Kind.CHAT:
            chat.send(str(channel.address or ""), letter)
        case Kind.WEBHOOK:
            body = webhook_body(letter, facts, delivery_id, clock.now())
            webhook.send(str(channel.address or ""), str(channel.secret or ""), body, delivery_id)
        case Kind.EMAIL:
            if problem := problem_of(channel):
                raise Refused(problem)
            email_list.send(channel.addresses, letter, delivery_id, done, most_seconds)
        case _:
            raise Refused(problem_of(channel))


def done_if_lost(channel: Channel, done: Collection[str]) -> Collection[str]:
    """What `done` is after a try whose end is not known."""
    if channel.kind != Kind.EMAIL or problem_of(channel):
        return done
    return email_list.done_if_lost(channel.addresses, done)


def problem_of(channel: Channel) -> str:
    """Why nothing can be sent through the channel, as far as its columns tell; empty if it can be tried.

    The form stores no such channel, but plain SQL can.
    """
    if channel.kind not in Kind.values:
        return say.NO_KIND.format()
    if channel.kind == Kind.EMAIL:
        count = len(channel.addresses)
        if not count:
            return say.NO_ADDRESSES.format()
        if count > MOST_ADDRESSES:
            return say.MANY_ADDRESSES.format(most=MOST_ADDRESSES)
    return ""
