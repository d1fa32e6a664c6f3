"""Which failures of the inbox an actor means."""

from __future__ import annotations

from typing import Annotated

from django.db.models import Q, QuerySet
from django.utils.translation import gettext as _
from pydantic import BaseModel, ConfigDict, Field, StrictBool, StrictInt, StrictStr

from scheduling.core.json_bounds import is_storable
from scheduling.core.text import visible_text
from scheduling.models import FailedExecution
from scheduling.operations.json_types import WHOLE, Instant
from scheduling.operations.refused import Refused
from scheduling.operations.search_conditions import error_class_is

MOST_IDS = 1_000
Id = Annotated[StrictInt, Field(ge=1, le=2**63 - 1), WHOLE]


class Selection(BaseModel):
    """Which failures of the inbox: those with these ids, or all that meet each of the other conditions.

    A selection without ids also states how many failures it has, as a dry run says. So nothing is done with failures
    that its author has not counted.
    """

    model_config = ConfigDict(extra="forbid", title="FailureSelection")

    ids: Annotated[list[Id], Field(min_length=1, max_length=MOST_IDS)] | None = None
    fingerprint: Annotated[StrictStr, Field(max_length=40)] | None = Field(None, description="An error group.")
    scheduler: Id | None = Field(None, description="The id of a schedule.")
    type: Annotated[StrictStr, Field(max_length=8)] | None = Field(None, description="worker, report or reminder.")
    target_name: Annotated[StrictStr, Field(max_length=200)] | None = None
    error_class: Annotated[StrictStr, Field(max_length=200)] | None = None
    failed_before: Instant | None = Field(None, description="Failures until this instant, as a dry run says.")
    all: StrictBool = Field(False, description="The whole inbox, if no other condition is given.")
    count: Annotated[StrictInt, Field(ge=0), WHOLE] | None = Field(
        None, description="How many failures the dry run has found."
    )

    @property
    def words(self) -> str:
        """The selection in words, for the history."""
        chosen = self.model_dump(exclude_none=True, exclude={"ids", "count", "failed_before", "all"})
        if self.ids:
            return f"{len(self.ids)} chosen"
        return visible_text(", ".join(f"{name}={value}" for name, value in chosen.items()) or "all", 300)


def chosen(rows: QuerySet[FailedExecution], wanted: Selection) -> QuerySet[FailedExecution]:
    """Those of the failures that are selected.

    Raises:
        Refused: INVALID.
    """
    columns = {"fingerprint": wanted.fingerprint, "scheduler": wanted.scheduler, "type": wanted.type}
    columns |= {"target_name": wanted.target_name, "error_class": wanted.error_class}
    given = {name: value for name, value in columns.items() if value is not None}
    for name, value in given.items():
        if isinstance(value, str) and not is_storable(value):
            raise Refused.value(name, _("This text cannot be stored, so nothing matches it."), "characters")
    if wanted.ids is None and not given and not wanted.all:
        raise Refused.value("ids", _("Select failures by ids or by a condition, or give all: true."), "empty")
    found = rows.filter(**{name: value for name, value in given.items() if name != "error_class"})
    if wanted.error_class is not None:
        found = found.filter(error_class_is(wanted.error_class))
    if wanted.ids is not None:
        found = found.filter(pk__in=wanted.ids)
    if wanted.failed_before is not None:
        found = found.filter(Q(finished_at__lte=wanted.failed_before) | Q(finished_at__isnull=True))
    return found
