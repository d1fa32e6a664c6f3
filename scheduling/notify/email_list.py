"""Sends one message to each of several e-mail addresses."""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence
from hashlib import sha256

from scheduling.core import delivery_sentences as say
from scheduling.core.text import visible_text
from scheduling.notify.delivery import Letter, NotSent, Refused, Undelivered, Unsure
from scheduling.notify.email import Mailer, message_id

MOST_SECONDS = 60.0
"""After this time no further e-mail is begun. The next try sends the rest."""

LAST_SECONDS = 20.0
"""So many seconds more has the last e-mail at most. Together they are less than `core.alert_retry.SENDING_SECONDS`."""


def send(
    addresses: Sequence[str], letter: Letter, delivery_id: str, done: Collection[str] = (),
    most_seconds: float = MOST_SECONDS,
) -> None:  # fmt: skip
    """Send the letter to each address that does not have it yet.

    An address that is refused holds back no other one. The Message-ID belongs to the delivery id and the address, so it
    is the same in each try.

    Args:
        done: the addresses that have the message: the attribute `done` of the errors of the earlier tries.
        most_seconds: after so many seconds no further e-mail is begun. The last one has as many seconds more, at most
            LAST_SECONDS.

    Raises:
        NotSent: some addresses did not get the message, and a later try can work.
        Unsure: the mail server did not answer while it had one of the messages. A later try sends it again.
        Refused: some addresses were refused for good, and all others have the message.
    """
    until, last, had = time.monotonic() + most_seconds, min(most_seconds, LAST_SECONDS), set(done)
    failed: dict[str, Undelivered] = {}
    with Mailer() as mailer:
        for address in addresses:
            if address in had:
                continue
            try:
                if not mailer.is_usable or time.monotonic() > until:
                    raise NotSent(say.NEXT_TRY.format())
                name = message_id(f"{delivery_id}-{_short(address)}")
                mailer.send(address, letter, name, until + last - time.monotonic())
                had.add(address)
            except Undelivered as error:
                failed[address] = error
    if failed:
        raise _end(failed, addresses, frozenset(had))


def _end(failed: dict[str, Undelivered], addresses: Sequence[str], done: frozenset[str]) -> Undelivered:
    """One error for all that failed. A message that may have arrived is the worst that can be said of a try."""
    kind: type[Undelivered] = next(
        kind for kind in (Unsure, NotSent, Refused) if any(isinstance(error, kind) for error in failed.values())
    )
    # The addresses that no try can reach are named first: a person must act on them.
    errors = sorted(failed.items(), key=lambda item: not isinstance(item[1], Refused))
    sentence = say.ADDRESSES_NEVER if kind is Refused else say.ADDRESSES_NOT_YET
    named = say.each_named([(visible_text(address, 80), str(error)) for address, error in errors])
    error = kind(sentence.format(failed=len(failed), total=len(addresses), named=named))
    error.done = done
    return error


def _short(address: str) -> str:
    return sha256(address.casefold().encode(errors="replace")).hexdigest()[:24]
