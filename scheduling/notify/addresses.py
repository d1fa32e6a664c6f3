"""Says which texts are e-mail addresses."""

from __future__ import annotations

from django.core.exceptions import ValidationError
from django.core.validators import validate_email

from scheduling.models.notification import RECIPIENT_LENGTH


def is_address(text: str) -> bool:
    """Whether the text is an e-mail address that a message can be sent to.

    Django accepts control characters between quotation marks. In a header, they could end the line.
    """
    try:
        validate_email(text)
    except ValidationError:
        return False
    return text.isprintable() and len(text) <= RECIPIENT_LENGTH
