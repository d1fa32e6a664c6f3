"""The parameters that many addresses share."""

from __future__ import annotations

from typing import Annotated, Any

from django.utils.translation import gettext as _
from ninja import Header, Path, Query
from pydantic import BaseModel, ConfigDict, Field

from scheduling.http.problems import STATUSES, ProblemShape, refusal

LARGEST_ID = 2**63 - 1
Id = Annotated[int, Path(ge=1, le=LARGEST_ID)]
IfMatch = Annotated[str | None, Header(alias="If-Match", max_length=200, description="The ETag that was read.")]


class PageQuery(BaseModel):
    """Which part of a list is wanted. Pages are found by keys, so a new row moves no other row to another page."""

    model_config = ConfigDict(title="Page")

    limit: int = Field(50, ge=1, le=200, description="How many rows a page has.")
    after: int | None = Field(None, ge=0, le=LARGEST_ID, description="`next` of the page before.")


Page = Annotated[PageQuery, Query()]

PROBLEMS: dict[Any, Any] = {min(STATUSES): ProblemShape}
"""Stands for the problem documents that each operation may give besides its own answers.

One status is enough: `http.documents` describes them all. For more, ninja would build a class for each status of each
operation at the start of the process.
"""


def expected_version(if_match: str | None) -> str | None:
    """The version that the header If-Match names; None if each version will do.

    Raises:
        Refused: IF_MATCH_INVALID.
    """
    if if_match is None or if_match.strip() == "*":
        return None
    text = if_match.strip().removeprefix("W/")
    if len(text) < 2 or not (text.startswith('"') and text.endswith('"')) or "," in text:
        raise refusal("IF_MATCH_INVALID", _("If-Match is one ETag in quotation marks, as it was received."))
    return text[1:-1]
