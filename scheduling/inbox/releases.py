"""The releases in which executions failed."""

from __future__ import annotations

from collections.abc import Iterable

from django.db.models import F

from scheduling.models import Attempt


def releases_of(failures: Iterable[int | None]) -> dict[int, str]:
    """The release of the last attempt of each of these executions, by the execution's id, in one query.

    An execution whose release is unknown is left out.
    """
    keys = [pk for pk in failures if pk is not None]
    last = Attempt.objects.filter(execution__in=keys, number=F("execution__attempt")).exclude(release="")
    return dict(last.order_by().values_list("execution", "release"))
