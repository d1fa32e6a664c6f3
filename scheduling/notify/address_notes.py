"""What the tries to send a message have found out about each of its e-mail addresses."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

ONCE, TWICE = "unsure once: ", "unsure twice: "
"""They begin a written note. No e-mail address begins like this: a space must stand between quotation marks."""


@dataclass
class AddressNotes:
    """The addresses that need no e-mail, and those that may have one. All others have none.

    The notes are written as texts, and a row keeps them (`AlertMessage.done`). A later note adds to those before, so
    the notes of two tries can be put together.

    Args:
        have: they have the message.
        once: one e-mail to them had no answer, so they may have the message. They get one more at most.
        twice: a second one had no answer either. They get none any more.
    """

    have: set[str] = field(default_factory=set)
    once: set[str] = field(default_factory=set)
    twice: set[str] = field(default_factory=set)

    @classmethod
    def read(cls, written: Iterable[str]) -> AddressNotes:
        """The notes that these texts say. A text without a mark is an address that has the message."""
        found = cls()
        for text in written:
            if text.startswith(ONCE):
                found.once.add(text.removeprefix(ONCE))
            elif text.startswith(TWICE):
                found.twice.add(text.removeprefix(TWICE))
            else:
                found.have.add(text)
        return found

    def written(self) -> frozenset[str]:
        """The notes as texts."""
        once, twice = (ONCE + address for address in self.once), (TWICE + address for address in self.twice)
        return frozenset({*self.have, *once, *twice})

    def left(self, addresses: Iterable[str]) -> list[str]:
        """Those of the addresses that do not have the message. Those that were not tried come first.

        So an address whose connection breaks each time does not keep the others from their e-mail.
        """
        return sorted((one for one in addresses if one not in self.have), key=lambda one: one in self.once | self.twice)

    def without_answer(self, addresses: Collection[str]) -> None:
        """Note that an e-mail to each of these addresses may have arrived."""
        self.twice |= self.once.intersection(addresses)
        self.once |= set(addresses)
