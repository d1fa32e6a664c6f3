"""Types of JSON values that pydantic reads in another way than a JSON schema does."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Annotated, Any

from django.utils.translation import gettext as _
from pydantic import AfterValidator, AwareDatetime, BeforeValidator

from scheduling.core.messages import FIRST_YEAR, LAST_YEAR

_INSTANT = re.compile(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d", re.ASCII)
EARLIEST, LATEST = datetime(FIRST_YEAR + 1, 1, 1, tzinfo=UTC), datetime(LAST_YEAR, 1, 1, tzinfo=UTC)
"""No row has an instant outside. So a condition with an earlier instant means the same as one with EARLIEST."""


def _whole(value: Any) -> Any:
    return int(value) if type(value) is float and value.is_integer() else value


def _instant(value: Any) -> Any:
    if isinstance(value, int | float) or (isinstance(value, str) and not _INSTANT.match(value)):
        raise ValueError(_("An instant has the form 2026-03-10T12:00:00Z."))
    return value


def _within(value: datetime) -> datetime:
    """The instant in UTC. Databases and Python cannot convert those at the ends of the calendar."""
    return min(max(value, EARLIEST), LATEST).astimezone(UTC)


WHOLE = BeforeValidator(_whole)
"""JSON has only one kind of number: 5.0 is the whole number 5. This stands behind the limits of the number, because
pydantic would otherwise not describe them."""

Instant = Annotated[AwareDatetime, BeforeValidator(_instant), AfterValidator(_within)]
"""A date and time with an offset. pydantic alone would read a number as the seconds since 1970."""
