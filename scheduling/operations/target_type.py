"""The type of a target as a value that clients give."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, WithJsonSchema

from scheduling.core.targets import A_TARGET, TARGET_KINDS


def _known(text: str) -> str:
    if text not in TARGET_KINDS:
        raise ValueError(f"It is the type of {A_TARGET}.")
    return text


TargetType = Annotated[str, AfterValidator(_known), WithJsonSchema({"type": "string", "enum": [*TARGET_KINDS]})]
"""One of `TARGET_KINDS`."""
