"""The values of a schedule as clients and files write them. The names are those of the columns."""

from __future__ import annotations

import difflib
from functools import lru_cache
from typing import Annotated, Any, Literal

from django.utils.translation import gettext as _
from pydantic import BaseModel, ConfigDict, Field, StrictBool, StrictFloat, StrictInt, StrictStr

from scheduling.core.after import DEFAULT_WITHIN
from scheduling.core.pings import URL_LENGTH
from scheduling.operations.json_types import WHOLE

MOST = 2**31 - 1
LONGEST_NAME = 40
"""So many characters of an unknown name are compared with the known ones."""
WholeNumber = Annotated[StrictInt, Field(ge=0, le=MOST), WHOLE]
Key = Annotated[StrictInt, Field(ge=1, le=2**63 - 1), WHOLE]
Name = Annotated[StrictStr, Field(min_length=1, max_length=200)]
Instant = Annotated[StrictStr, Field(max_length=64)]
Text = Annotated[StrictStr, Field(max_length=500)]


class ScheduleValues(BaseModel):
    """What a client gives of a schedule. What it leaves out stays as it is; a new schedule gets the default.

    Exactly one target is given, by its name or by its id.
    """

    model_config = ConfigDict(extra="forbid", title="ScheduleValues")

    id: Annotated[StrictInt, WHOLE] | None = Field(
        None, description="The database chooses it. A value that is sent is ignored."
    )
    name: Annotated[StrictStr, Field(max_length=100)] | None = Field(
        None, description="1 to 100 lower-case letters, digits and the signs . _ : / - ; unique. Null: no name."
    )
    description: Annotated[StrictStr, Field(max_length=255)] = ""
    schedule: Annotated[StrictStr, Field(max_length=255)] = Field(
        "",
        description="Five fields of cron, an alias such as @daily, or an interval such as @every 90m. "
        "Empty with a `date_time`.",
    )
    date_time: Instant | None = Field(
        None, description="One date and time, ISO 8601. Without an offset it is read in the schedule's zone."
    )
    timezone: Annotated[StrictStr, Field(max_length=64)] = Field("", description="An IANA name. Empty: CRON_TIMEZONE.")
    status: StrictBool = Field(True, description="Whether it is active. False: paused.")
    pause_reason: Text = ""
    worker: Name | None = Field(None, description="The name of the worker that runs.")
    worker_id: Key | None = None
    report: Name | None = Field(None, description="The controller of the report that runs.")
    report_id: Key | None = None
    reminder: Name | None = Field(None, description="The name of the reminder that is sent.")
    reminder_id: Key | None = None
    calendar: Annotated[StrictStr, Field(max_length=100)] | None = Field(
        None, description="The name of the calendar at whose times it does not run. Null: none."
    )
    params: dict[str, Any] = Field(
        default_factory=dict,
        description="They replace the present ones. A secret that is sent back masked keeps its value.",
    )
    overlap: Literal["allow", "skip", "wait", "replace"] = "allow"
    stay_alive: StrictBool = Field(False, description="A service, which is started again whenever it ends.")
    after: Name | None = Field(
        None,
        description="The name of the schedule that must have succeeded before a run starts; schedule-<id> if it has no "
        "name. Null: none. One that you may not see stays.",
    )
    after_id: Key | None = None
    after_span: Literal["day", "previous"] = Field(
        "day", description="Its last run of the same local day, or its last run since the run before of this schedule."
    )
    after_within_seconds: WholeNumber = Field(
        DEFAULT_WITHIN, description="So long a run waits, from its start, or from its claim if that is later."
    )
    after_late: Literal["skip", "run", "fail"] = Field("skip", description="What happens then.")
    spread_seconds: WholeNumber | None = Field(
        None, description="Each run starts by an offset later that is less than this: at most 86400 (a day)."
    )
    spread_each: StrictBool = Field(False, description="Each run has another offset, instead of the same one.")
    missed_runs: Literal["latest", "none", "all"] = Field(
        "latest", description="Which of the runs that fell due while no producer ran are run."
    )
    missed_cap: WholeNumber | None = Field(None, description="With `all`: at most so many. Null: 100.")
    missed_within_seconds: WholeNumber | None = Field(
        None, description="How old a missed run may be. Null: CRON_CATCH_UP_SECONDS."
    )
    active_from: Instant | None = Field(None, description="Before this instant it does not run. See `date_time`.")
    active_until: Instant | None = Field(None, description="After this instant it does not run. See `date_time`.")
    on_excluded: Literal["skip", "hold"] = Field(
        "skip", description="What happens to a run that a calendar excludes: skipped, or held until it is allowed."
    )
    queue: Annotated[StrictStr, Field(max_length=100)] = ""
    priority: Literal["", "high", "normal", "low"] = ""
    time_limit: WholeNumber | None = Field(None, description="Seconds. 0: no limit. Null: as the code or settings say.")
    language: Annotated[StrictStr, Field(max_length=16)] = ""
    ping_url: Annotated[StrictStr, Field(max_length=URL_LENGTH)] = Field(
        "",
        description="The address of a monitor, or ${CRON_PING_…}. It is a secret, and shown as a mask. A mask that is "
        "sent back keeps the URL.",
    )
    max_retries: WholeNumber | None = None
    retry_delay_ms: WholeNumber | None = None
    retry_multiplier: StrictFloat | StrictInt | None = None
    retry_max_delay_ms: WholeNumber | None = None
    retry_jitter: StrictBool | None = None
    keep_success_days: WholeNumber | None = None
    keep_failed_days: WholeNumber | None = None
    keep_output_days: WholeNumber | None = None
    keep_count: WholeNumber | None = None
    start_within_seconds: WholeNumber | None = Field(
        None, description="An occurrence that has not started so long after it was due does not run. Null: no deadline."
    )
    max_runs: WholeNumber | None = Field(None, description="The schedule is paused after so many runs. Null: no bound.")
    pause_after_failures: WholeNumber | None = Field(
        None, description="The schedule is paused when so many runs in a row have failed for good. Null: never."
    )
    user: Annotated[StrictStr, Field(max_length=254)] | None = Field(None, description="The user name of the owner.")
    group: Annotated[StrictStr, Field(max_length=150)] | None = Field(
        None, description="The name of the group whose members see the schedule. Null: all users see it."
    )

    def given(self) -> dict[str, Any]:
        """The values that the client has sent, without `id`."""
        return {name: getattr(self, name) for name in self.model_fields_set if name != "id"}


def unknown_words(name: str, known: tuple[str, ...]) -> str:
    """Why a value with this name is refused: the sentence names the nearest known name, else all of them."""
    if nearest := _nearest(name[:LONGEST_NAME], known):
        return _("A file has no such value. Did you mean “%(name)s”?") % {"name": nearest}
    return _("A file has no such value. It may have: %(names)s.") % {"names": ", ".join(known)}


@lru_cache(maxsize=1024)
def _nearest(name: str, known: tuple[str, ...]) -> str:
    return next(iter(difflib.get_close_matches(name, known, n=1)), "")
