"""The shapes of the failed inbox: error groups, and what became of selected failures."""

from __future__ import annotations

from datetime import datetime

from pydantic import Field

from scheduling.operations.shapes import Shape


class GroupShape(Shape):
    """An error group of the failed inbox: failures with the same fingerprint."""

    fingerprint: str
    count: int
    error_class: str
    error_message: str
    latest: int = Field(description="The id of the newest failure.")
    first_at: datetime | None
    last_at: datetime | None
    release: str = Field(description="The release with which the first failure ended; empty if it is unknown.")
    targets: dict[str, int] = Field(
        description="How many failures each target has, such as `report Sales`; at most 20 targets."
    )


class GroupsShape(Shape):
    """The largest error groups of the failed inbox."""

    groups: list[GroupShape]
    more: int = Field(description="The number of groups that are left out.")
    newest_counted: int = Field(description="How many of the newest failures were counted; 0: all of them.")


class DoneShape(Shape):
    """What became of the selected failures, see `operations.failures.Done`."""

    dry_run: bool
    matching: int
    done: list[int]
    left: int
    refused: int
    left_out: int
    failed_before: datetime
    replay: int | None
    missing: list[int] = Field(description="Those of the chosen ids that are not in the inbox, or that you do not see.")
