"""A params model with one field of every kind for which the params form has an input."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from enum import Enum
from typing import Literal, Optional

from pydantic import BaseModel, Field, SecretStr, model_validator


class Colour(Enum):
    """An enum with a text and a number."""

    RED = "red"
    BLUE = 2


class Part(BaseModel):
    """A nested model."""

    deep: int = 1


class Many(BaseModel):
    """One field of every kind."""

    needed: str
    region: Literal["eu", "us"] = "eu"
    colour: Colour = Colour.RED
    days: int = Field(1, ge=1, le=90, description="How far <b>back</b>.", title="Days back")
    share: float = 0.5
    price: Decimal = Decimal("1.10")
    dry: bool = False
    maybe: bool | None = None
    name: Optional[str] = Field(None, max_length=20, pattern="^[a-z]*$")  # noqa: UP045 - projects use both spellings
    day: dt.date = dt.date(2026, 1, 1)
    at: dt.time = dt.time(8)
    moment: dt.datetime | None = None
    tags: list[str] = []
    part: Part = Part()
    token: SecretStr = SecretStr("")
    other_name: int = Field(3, alias="other-name")

    @model_validator(mode="after")
    def _whole(self) -> Many:
        if self.needed == "forbidden":
            raise ValueError("forbidden is forbidden")
        return self
