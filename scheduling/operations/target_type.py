"""The type of a target as a value that clients give."""

from __future__ import annotations

from typing import Annotated

from django.utils.translation import gettext as _
from pydantic import AfterValidator, WithJsonSchema

from scheduling.core.targets import TARGET_KINDS


def _known(text: str) -> str:
    if text not in TARGET_KINDS:
        raise ValueError(_("It is the type of a worker, a report or a reminder."))
    return text


TargetType = Annotated[str, AfterValidator(_known), WithJsonSchema({"type": "string", "enum": [*TARGET_KINDS]})]
"""One of `TARGET_KINDS`."""
