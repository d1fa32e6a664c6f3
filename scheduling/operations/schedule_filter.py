"""Which schedules a list has. The conditions are those of the list in the admin."""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce
from operator import or_
from typing import Annotated

from django.db.models import Q, QuerySet
from django.utils import timezone as clock
from django.utils.translation import gettext as _
from pydantic import BaseModel, ConfigDict, Field, StrictStr

from scheduling.core.health import Health
from scheduling.core.json_bounds import is_storable
from scheduling.models import Scheduler
from scheduling.models.health import RANK, with_health
from scheduling.operations import schedules
from scheduling.operations.actor import Actor
from scheduling.operations.names import SCHEDULE_COLUMNS
from scheduling.operations.refused import Refused
from scheduling.operations.target_type import TargetType

MOST_WORDS = 10


class ScheduleFilter(BaseModel):
    """Conditions on schedules. A schedule meets all of them."""

    model_config = ConfigDict(extra="forbid", title="ScheduleFilter")

    status: bool | None = Field(None, description="Whether it is active. False: paused.")
    type: TargetType | None = None
    health: Health | None = None
    name: Annotated[StrictStr, Field(max_length=120)] | None = Field(None, description="The whole name.")
    group: Annotated[StrictStr, Field(max_length=150)] | None = Field(
        None, description="The name of a group; empty: the schedules without a group."
    )
    q: Annotated[StrictStr, Field(max_length=200)] = Field(
        "", description="Words. The name, description, cron expression or target contains each of them."
    )


def filtered_schedules(actor: Actor, wanted: ScheduleFilter) -> QuerySet[Scheduler]:
    """The schedules that the actor sees and that meet the conditions, without an order.

    Raises:
        Refused: FORBIDDEN; INVALID if a text cannot be stored, or if there are too many words.
    """
    rows = schedules.seen(actor)
    for name in ("group", "name", "q"):
        if not is_storable(getattr(wanted, name) or ""):
            raise Refused.value(name, _("This text cannot be stored, so nothing matches it."), "characters")
    words = wanted.q.split()
    if len(words) > MOST_WORDS:
        raise Refused.value("q", _("A search has at most %(count)s words.") % {"count": MOST_WORDS}, "words")
    return _healthy(rows.filter(*_conditions(wanted), *map(_with_word, words)), wanted.health)


def _conditions(wanted: ScheduleFilter) -> Iterator[Q]:
    if wanted.status is not None:
        yield Q(status=wanted.status)
    if wanted.type is not None:
        yield Q(**{f"{wanted.type}__isnull": False})
    if wanted.name is not None:
        yield Q(name=wanted.name)
    if wanted.group is not None:
        yield Q(group__name=wanted.group) if wanted.group else Q(group=None)


def _with_word(word: str) -> Q:
    return reduce(or_, (Q(**{f"{column}__icontains": word}) for column in SCHEDULE_COLUMNS))


def _healthy(rows: QuerySet[Scheduler], health: Health | None) -> QuerySet[Scheduler]:
    if health is None:
        return rows
    return with_health(rows, clock.now()).filter(**{RANK: list(Health).index(health)})
