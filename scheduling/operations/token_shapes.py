"""The shape of an API token."""

from __future__ import annotations

from datetime import datetime

from pydantic import Field

from scheduling.operations.shapes import Shape


class TokenShape(Shape):
    """An API token, without its secret."""

    id: int
    name: str
    prefix: str = Field(description="The beginning of the secret.")
    user: str = Field(description="The user name of the owner.")
    state: str = Field(description="live, expired or revoked.")
    read_only: bool
    permissions: list[str] | None = Field(description="Null: all permissions of the owner.")
    created_at: datetime
    expires_at: datetime | None
    last_used_at: datetime | None
    revoked_at: datetime | None
