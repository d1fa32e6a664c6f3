"""Says which texts are e-mail addresses."""

from __future__ import annotations

from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.utils.translation import gettext_lazy as _

from scheduling.core.text import visible_text
from scheduling.core.words import quoted
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


def checked_lines(text: str, most: int) -> str:
    """The e-mail addresses of a form's field, one on each line, without empty lines.

    Raises:
        ValidationError: a line is no address, or there are more than `most`. The error names the first such lines.
    """
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if len(lines) > most:
        raise ValidationError(_("At most %(count)d addresses."), code="many", params={"count": most})
    wrong = [line for line in lines if not is_address(line)]
    if wrong:
        names = ", ".join(quoted(visible_text(line, 80)) for line in wrong[:3])
        raise ValidationError(_("Not an e-mail address: %(names)s."), code="email", params={"names": names})
    return "\n".join(lines)
