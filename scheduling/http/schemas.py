"""The bodies of requests and the lists of answers."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Generic, TypeVar

from pydantic import BaseModel, ConfigDict, Field, StrictBool, StrictInt, StrictStr

from scheduling.core.backfill import PER_MINUTE, REASON_LENGTH, USUAL_PER_MINUTE, Options
from scheduling.operations.failure_selection import Selection
from scheduling.operations.json_types import WHOLE, Instant
from scheduling.operations.shapes import Shape, UnusableShape
from scheduling.operations.why_shapes import WhyShape

Item = TypeVar("Item", bound=BaseModel)


class Body(BaseModel):
    """A body. An unknown name is refused, because a typing error must not be ignored."""

    model_config = ConfigDict(extra="forbid")


class Listing(BaseModel, Generic[Item]):
    """One page of a list."""

    items: list[Item]
    unusable: list[UnusableShape] = Field(description="Rows that cannot be read, because of what plain SQL has stored.")
    next: int | None = Field(description="The parameter `after` of the next page; null on the last one.")
    is_cut: bool = Field(description="Whether a search has read only the newest rows.")


class PauseBody(Body):
    """Why a schedule is paused."""

    reason: Annotated[StrictStr, Field(max_length=500)] = ""


class ReasonBody(Body):
    """Why a schedule is changed."""

    reason: Annotated[StrictStr, Field(max_length=500)] = ""


class RunBody(Body):
    """The params of one run. Null: those of the schedule, or of the execution that is run again."""

    params: dict[str, Any] | None = None


class ScheduleRunBody(RunBody):
    """The params of one run. Null: those of the schedule."""

    beside: StrictBool = Field(
        False, description="Start it beside a run that is not over, whatever the overlap of the schedule says."
    )


class TargetRunBody(Body):
    """The params of one run. They override those of the target."""

    params: dict[str, Any] = Field(default_factory=dict)


class BackfillBody(Body):
    """A range, and how the runs of its instants are made.

    A time without an offset is one of the schedule's zone. A date alone is the whole day.
    """

    model_config = ConfigDict(extra="forbid", populate_by_name=True)

    since: Annotated[StrictStr, Field(alias="from", max_length=40)]
    until: Annotated[StrictStr, Field(max_length=40, description="It belongs to the range.")]
    dry_run: StrictBool = Field(False, description="Only list the instants.")
    newest_first: StrictBool = False
    per_minute: Annotated[StrictInt, Field(ge=PER_MINUTE[0], le=PER_MINUTE[1]), WHOLE] = Field(
        USUAL_PER_MINUTE, description="How many runs are made in a minute."
    )
    obey_overlap: StrictBool = Field(True, description="Whether a schedule that runs alone stays alone.")
    also_ran: StrictBool = Field(False, description="Whether instants run again that the schedule has run by itself.")
    reason: Annotated[StrictStr, Field(max_length=REASON_LENGTH)] = ""

    @property
    def options(self) -> Options:
        """How the runs are made."""
        return Options(
            self.newest_first, self.per_minute, self.obey_overlap, self.also_ran, " ".join(self.reason.split())
        )


class RepublishBody(Selection):
    """Which failures are run again, and how."""

    model_config = ConfigDict(extra="forbid", title="RepublishBody")

    dry_run: StrictBool = Field(False, description="Only count them.")
    minutes: Annotated[StrictInt, Field(ge=0, le=1440), WHOLE] = Field(
        0, description="Spread them over so many minutes."
    )
    canary: StrictBool = Field(False, description="Run one first, and the others when it has succeeded.")


class DiscardBody(Selection):
    """Which failures leave the inbox, and why."""

    model_config = ConfigDict(extra="forbid", title="DiscardBody")

    dry_run: StrictBool = Field(False, description="Only count them.")
    reason: Annotated[StrictStr, Field(max_length=1500)] = ""


class Delivery(BaseModel):
    """How a report is delivered. `instant` belongs to this request, the others to the report."""

    model_config = ConfigDict(extra="allow")

    instant: StrictBool = Field(False, description="Wait until the report is done, within a limit.")


class ReportOptions(BaseModel):
    """`options_interface` of the original contract."""

    model_config = ConfigDict(extra="allow")

    delivery: Delivery | None = None


class GenerateReport(Body):
    """Which report is made now. It is named by its controller or by its id."""

    controller: Annotated[StrictStr, Field(min_length=1, max_length=200)] | None = None
    report_id: Annotated[StrictInt, Field(ge=1, le=2**63 - 1), WHOLE] | None = None
    params: dict[str, Any] = Field(default_factory=dict)
    options_interface: ReportOptions | None = None

    @property
    def instant(self) -> bool:
        """Whether the client waits for the result."""
        options = self.options_interface
        return options is not None and options.delivery is not None and options.delivery.instant


class WhyAnswers(BaseModel):
    """Why a schedule did or did not run at an instant."""

    answers: list[WhyShape]


class FailureQuery(BaseModel):
    """Conditions on failures of the inbox. A failure meets all of them."""

    model_config = ConfigDict(extra="forbid", title="FailureFilter")

    fingerprint: str | None = Field(None, max_length=40, description="An error group.")
    scheduler: int | None = Field(None, ge=1, le=2**63 - 1, description="The id of a schedule.")
    type: str | None = Field(None, max_length=8, description="worker, report or reminder.")
    target_name: str | None = Field(None, max_length=200)
    error_class: str | None = Field(None, max_length=200)
    failed_before: Instant | None = None

    @property
    def selection(self) -> Selection:
        """The same as a selection."""
        return Selection(all=True, **self.model_dump(exclude_none=True))


class OutputGroup(BaseModel):
    """Lines of one attempt."""

    attempt: int
    lines: list[str]


class OutputShape(BaseModel):
    """The output from a cursor on."""

    groups: list[OutputGroup]
    cursor: str = Field(description="The parameter `after` of the next request.")
    more: bool = Field(description="Whether further lines are stored: ask again at once.")
    state: str
    is_over: bool


class StartedShape(BaseModel):
    """A run that was asked for. `address` is that of the execution, as the header Location."""

    id: int
    state: str
    address: str


class CancelShape(BaseModel):
    """What a cancel did: `cancelled`, or `asked` if the process of the run ends within seconds."""

    id: int
    result: str


class HandlerShape(BaseModel):
    """A handler that this web process knows."""

    type: str
    name: str
    title: str
    description: str
    queue: str
    permission: str
    params_schema: dict[str, Any] = Field(description="The JSON schema of its params.")


class HandlerList(BaseModel):
    """All handlers."""

    items: list[HandlerShape]


class ProcessShape(Shape):
    """A producer or consumer."""

    id: int
    kind: str
    container_id: str
    state: str = Field(description="alive, silent or stopped.")
    started_at: datetime
    heartbeat_at: datetime
    stopped_at: datetime | None


class FindingShape(BaseModel):
    """What is wrong, and what to do. The dashboard of the admin shows the same."""

    check: str
    level: str = Field(description="warn or fail.")
    seen: str
    advice: str


class HealthShape(BaseModel):
    """The present state of the installation, as far as the caller sees it."""

    level: str = Field(description="ok, warn or fail: the worst of the findings.")
    producers: int = Field(description="How many are alive.")
    consumers: int = Field(description="How many are alive.")
    failed: int = Field(description="How many failures the inbox has; at most 10,000 are counted.")
    findings: list[FindingShape]
