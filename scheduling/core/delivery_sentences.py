"""The sentences that rows store about messages and pings that could not be delivered."""

from __future__ import annotations

from collections.abc import Sequence

from scheduling.core.stored_sentence import DECIMAL, NUMBER, Kind, StoredPhrase, StoredSentence, or_text, told

_NO_TEXT = StoredPhrase("no text")
_MORE = StoredPhrase("and %(count)s more", count=NUMBER)
_NO_ANSWER = StoredPhrase("no answer")
NO_TEXT, NO_ANSWER = _NO_TEXT.format(), _NO_ANSWER.format()
"""They stand for an answer without text, and for no answer."""

_WORDS = {"status": NUMBER, "words": or_text(_NO_TEXT)}

MOST_NAMED = 3
"""So many recipients are named with their errors."""


def each_named(errors: Sequence[tuple[str, str]]) -> str:
    """The first recipients, each with its error, such as `ann@example.com: This is not an address; and 2 more`."""
    named = [f"{recipient}: {error}" for recipient, error in errors[:MOST_NAMED]]
    more = [_MORE.format(count=len(errors) - MOST_NAMED)] if len(errors) > MOST_NAMED else []
    return "; ".join([*named, *more])


def _each_in_language(text: str, depth: int) -> str:
    if depth > 1:  # rows have no list within a list, and a hostile text must not take long
        return text
    return "; ".join(_in_language(piece, depth) for piece in text.split("; ", 2 * MOST_NAMED))


def _in_language(piece: str, depth: int) -> str:
    recipient, colon, error = piece.partition(": ")
    if not colon:
        return _MORE.in_language(piece) or piece
    return f"{recipient}: {_NO_ANSWER.in_language(error) or told(error, depth + 1) or error}"


_TO_MANY = {"failed": NUMBER, "total": NUMBER, "named": Kind("", 0, _each_in_language)}

ADDRESSES_NEVER = StoredSentence("%(failed)s of %(total)s addresses cannot get the message. %(named)s", **_TO_MANY)
ADDRESSES_NOT_YET = StoredSentence("%(failed)s of %(total)s addresses did not get the message. %(named)s", **_TO_MANY)
RECIPIENTS_NEVER = StoredSentence("%(failed)s of %(total)s recipients cannot get the message. %(named)s", **_TO_MANY)
RECIPIENTS_NOT_YET = StoredSentence("%(failed)s of %(total)s recipients did not get the message. %(named)s", **_TO_MANY)

MAIL_ANSWERED = StoredSentence("The mail server answered %(status)s: %(words)s", **_WORDS)
MAIL_AWAY = StoredSentence("The mail server cannot be used: %(error)s")
NO_BACKEND = StoredSentence("The mail backend did not send the message.")
NO_ADDRESS = StoredSentence("This is not an e-mail address: %(address)s")
NEXT_TRY = StoredSentence("The next try sends it")

WEBHOOK_AWAY = StoredSentence("The server of the webhook cannot be reached.")
WEBHOOK_LATE = StoredSentence("The server of the webhook did not answer within %(seconds)s s.", seconds=DECIMAL)
WEBHOOK_MOVED = StoredSentence(
    "The webhook answered %(status)s. It points to another address, which is not called.", status=NUMBER
)
WEBHOOK_ANSWERED = StoredSentence("The webhook answered %(status)s: %(words)s", **_WORDS)
WEBHOOK_UNUSABLE = StoredSentence("The address of the webhook cannot be called.")
NO_JSON = StoredSentence("The message cannot be written as JSON: %(error)s.")
TOO_LONG = StoredSentence("The message has %(size)s bytes. A webhook gets at most %(most)s.", size=NUMBER, most=NUMBER)

CHAT_AWAY = StoredSentence("The chat server cannot be reached.")
CHAT_LATE = StoredSentence("The chat server did not answer within %(seconds)s s.", seconds=DECIMAL)
CHAT_ANSWERED = StoredSentence("The chat server answered %(status)s: %(words)s", **_WORDS)
CHAT_UNUSABLE = StoredSentence("The address of the chat cannot be called.")
NOT_SENDABLE = StoredSentence("The message cannot be sent to this address.")

NO_KIND = StoredSentence("The channel has no known kind. Choose one on the page of the channel.")
NO_ADDRESSES = StoredSentence("The channel has no e-mail address.")
MANY_ADDRESSES = StoredSentence("The channel has more than %(most)s e-mail addresses.", most=NUMBER)
CHANNEL_DELETED = StoredSentence("The channel was deleted.")
OTHER_GROUP = StoredSentence("The alert and the channel belong to different groups by now.")
TRIED_TOO_OFTEN = StoredSentence("It was tried too often.")
TRY_LATE = StoredSentence("The try did not end within %(seconds)s s.", seconds=DECIMAL)
DEFECT = StoredSentence("The message could not be sent: %(error)s")
TRY_LOST = StoredSentence("The try was lost.")
TWO_WITHOUT_ANSWER = StoredSentence(
    "Two tries ended without an answer. The message may have arrived, so it is not sent again."
)

NOT_CALLABLE = StoredSentence("This address cannot be called: %(error)s")
INTERNAL = StoredSentence(
    "%(host)s has the internal address %(address)s. The setting CRON_INTERNAL_HOSTS names the hosts that may have one."
)
NO_HOST = StoredSentence("The address names no host that can be called.")
NO_SCHEME = StoredSentence("The address must begin with http:// or https://, and name a host.")

LATE = StoredSentence("The server did not answer within %(seconds)s s.", seconds=DECIMAL)
AWAY = StoredSentence("The server cannot be reached or did not answer in time (%(error)s).")
MOVED = StoredSentence(
    "The server answered %(status)s. Redirects are not followed: they could lead elsewhere.", status=NUMBER
)
ANSWERED = StoredSentence("The server answered %(status)s: %(words)s", **_WORDS)
SILENT = StoredSentence("The server does not answer.")
CALL_FAILED = StoredSentence("The call failed: %(error)s.")
NO_PING = StoredSentence("The ping cannot be made: %(error)s.")
NO_SCHEDULE = StoredSentence("The schedule is deleted.")
NO_PING_URL = StoredSentence("The schedule is deleted, or has no ping URL any more.")
UNKNOWN = StoredSentence("The process ended while it sent this ping, so it is not known whether it arrived.")
