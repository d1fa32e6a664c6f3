"""The e-mail addresses that a report is sent to, as an operator writes them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from django.utils.translation import gettext as _
from pydantic_core import PydanticCustomError

from scheduling.core.text import visible_text
from scheduling.notify.addresses import is_address

MOST_RECIPIENTS = 100

_SEPARATORS = re.compile(r"[,\r\n]")


def read_recipients(value: Any) -> tuple[str, ...]:
    """The addresses in a list, or in one text with commas or line ends between them, without repeats.

    Raises:
        PydanticCustomError: the value is neither; a text is not an address; there are more than MOST_RECIPIENTS.
    """
    items = _SEPARATORS.split(value) if isinstance(value, str) else value
    if not isinstance(items, list | tuple) or not all(isinstance(item, str) for item in items):
        raise _refused(_("must be a list of e-mail addresses, or one text with commas or line ends between them"))
    return _distinct(item.strip(" ") for item in items)


def _distinct(addresses: Iterable[str]) -> tuple[str, ...]:
    found: dict[str, str] = {}
    for address in filter(None, addresses):
        found.setdefault(address.lower(), address)
    if len(found) > MOST_RECIPIENTS:
        facts = {"most": MOST_RECIPIENTS, "count": len(found)}
        raise _refused(_("must be at most %(most)d e-mail addresses, not %(count)d") % facts)
    for address in found.values():
        if not is_address(address):
            raise _refused(_("%(text)s is not an e-mail address") % {"text": f'"{visible_text(address, 60)}"'})
    return tuple(found.values())


def _refused(text: str) -> PydanticCustomError:
    return PydanticCustomError("recipients", "{text}", {"text": text})
