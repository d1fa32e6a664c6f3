"""Why a message of alerts was not sent, for one user."""

from __future__ import annotations

from django.utils.translation import gettext as _

from scheduling.core.known_sentences import for_reader


def message_error(error: str, limit: int, *, tells_of_others: bool) -> str:
    """The error in the reader's language; empty if there is none.

    A receiver may repeat the whole message in its answer, and the error repeats the answer.

    Args:
        error: the error as the row has it.
        limit: the longest text, in characters.
        tells_of_others: whether the message tells of alerts that the user does not see.
    """
    if error and tells_of_others:
        return _("The reason is shown to users who see all groups.")
    return for_reader(error, limit)
