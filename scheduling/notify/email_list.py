"""Sends one message to each of several e-mail addresses."""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence
from dataclasses import replace
from hashlib import sha256

from django.utils.translation import gettext as _

from scheduling.core import delivery_sentences as say
from scheduling.core.text import visible_text
from scheduling.notify.address_notes import AddressNotes
from scheduling.notify.delivery import Letter, NotSent, Refused, Undelivered, Unsure, UnsureOfSome
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

    An address that is refused, or whose connection breaks, holds back no other one. The Message-ID belongs to the
    delivery id and the address, so it is the same in each try.

    Args:
        done: the attribute `done` of the errors of the earlier tries. It says which addresses have the message, and
            which may have it (`AddressNotes`). One that may have it gets it once more at most, and is then given up.
        most_seconds: after so many seconds no further e-mail is begun. The last one has as many seconds more, at most
            LAST_SECONDS.

    Raises:
        NotSent: some addresses did not get the message, and a later try can work.
        UnsureOfSome: the mail server did not answer while it had one of the messages. A later try sends it again.
        Refused: some addresses were refused or given up for good, and all others have the message.
    """
    until, last, notes = time.monotonic() + most_seconds, min(most_seconds, LAST_SECONDS), AddressNotes.read(done)
    failed: dict[str, Undelivered] = {}
    with Mailer() as mailer:
        for address in notes.left(addresses):
            try:
                if address in notes.twice:
                    raise Refused(say.TWO_WITHOUT_ANSWER.format())
                if not mailer.is_usable or time.monotonic() > until:
                    raise NotSent(say.NEXT_TRY.format())
                own = _repeated(letter) if address in notes.once else letter
                name = message_id(f"{delivery_id}-{_short(address)}")
                mailer.send(address, own, name, until + last - time.monotonic())
                notes.have.add(address)
            except Unsure as error:
                notes.without_answer([address])
                given_up = address in notes.twice
                failed[address] = Refused(say.TWO_WITHOUT_ANSWER.format()) if given_up else error
            except Undelivered as error:
                failed[address] = error
    if failed:
        raise _end(failed, addresses, notes.written())


def done_if_lost(addresses: Sequence[str], done: Collection[str]) -> frozenset[str]:
    """What `done` is after a try whose end is not known: each address that is left may have the message."""
    notes = AddressNotes.read(done)
    notes.without_answer(notes.left(addresses))
    return notes.written()


def _end(failed: dict[str, Undelivered], addresses: Sequence[str], done: frozenset[str]) -> Undelivered:
    """One error for all that failed. A message that may have arrived is the worst that can be said of a try."""
    errors = failed.values()
    later = NotSent if any(isinstance(error, NotSent) for error in errors) else Refused
    kind: type[Undelivered] = UnsureOfSome if any(isinstance(error, Unsure) for error in errors) else later
    # The addresses that no try can reach are named first: a person must act on them.
    named = sorted(failed.items(), key=lambda item: not isinstance(item[1], Refused))
    sentence = say.ADDRESSES_NEVER if kind is Refused else say.ADDRESSES_NOT_YET
    each = say.each_named([(visible_text(address, 80), str(error)) for address, error in named])
    error = kind(sentence.format(failed=len(failed), total=len(addresses), named=each))
    error.done = done
    return error


def _repeated(letter: Letter) -> Letter:
    """The letter with the sentence that says why it may come twice. The letter about alerts may have it already."""
    said = _("This message may come twice: an earlier try ended without an answer.")
    return letter if said in letter.text else replace(letter, text=f"{letter.text}\n\n{said}")


def _short(address: str) -> str:
    return sha256(address.casefold().encode(errors="replace")).hexdigest()[:24]
