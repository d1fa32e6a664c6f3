"""The shape of the answer why a schedule did or did not run."""

from __future__ import annotations

from datetime import datetime

from pydantic import Field

from scheduling.operations.shapes import Shape


class NearShape(Shape):
    """An occurrence near an instant, by the present times of the schedule."""

    at: datetime
    execution: int | None
    state: str | None


class WhyShape(Shape):
    """Why a schedule did or did not run at an instant."""

    schedule_id: int
    at: datetime = Field(description="The instant, a whole minute; a whole second if the schedule counts seconds.")
    answer: str = Field(
        description="recorded, left_out, will_run, will_be_left_out, not_created, other_times, not_due, paused, waits "
        "or no_record."
    )
    text: str = Field(description="The answer in a sentence.")
    note: str = Field(description="What the clocks did with a local time that was typed; empty: nothing.")
    execution: int | None = Field(description="The id of the execution that the answer tells of.")
    state: str | None = Field(description="The state of this execution.")
    before: NearShape | None = Field(description="The occurrence before, if the answer is that it was not due.")
    after: NearShape | None
