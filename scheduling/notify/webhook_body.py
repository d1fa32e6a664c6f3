"""The JSON that a webhook gets."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from scheduling.core import delivery_sentences as say
from scheduling.notify.delivery import Letter, Refused

VERSION = 1
"""The version of the shape. A new key does not change it; a key that goes or means something else does."""

MOST_BYTES = 256 * 1024
"""The longest body."""


def webhook_body(letter: Letter, facts: Mapping[str, Any], delivery_id: str, sent_at: datetime) -> bytes:
    """The JSON object as ASCII text: `version`, `id`, `sent_at`, `subject` and `text` of the letter, and the facts.

    Args:
        facts: what a program wants to know, beginning with `event`. Values that JSON does not have, such as times,
            become texts. The facts cannot replace `version`, `id` and `sent_at`.
        delivery_id: see `webhook.send`.

    Raises:
        Refused: the facts are no JSON, or too long.
    """
    envelope = {"version": VERSION, "id": delivery_id, "sent_at": sent_at.isoformat()}
    try:
        text = json.dumps(
            {**envelope, "subject": letter.subject, "text": letter.text, **facts, **envelope},
            default=_text, allow_nan=False,
        )  # fmt: skip
    except (ValueError, TypeError, RecursionError) as error:
        raise Refused(say.NO_JSON.format(error=type(error).__name__)) from error
    if len(text) > MOST_BYTES:
        raise Refused(say.TOO_LONG.format(size=len(text), most=MOST_BYTES))
    return text.encode("ascii")


def _text(value: object) -> str:
    return value.isoformat() if isinstance(value, datetime) else str(value)
