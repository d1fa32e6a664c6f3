"""The inbox by cause: thousands of failures read as a few error groups, counted by the database."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any

from django.contrib.admin.views.main import ChangeList
from django.db.models import Count, Max, Min, QuerySet
from django.db.models.functions import TruncDate
from django.urls import reverse
from django.utils.formats import date_format
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from scheduling.admin import svg
from scheduling.admin.parts import EMPTY, first_line, shown, when
from scheduling.models import SchedulerExecution

MOST = 100
"""Groups on the page, the largest first; a filter or the search finds the others."""
TARGETS = 3
DAYS = 14
PARTS = 5_000
"""More than there can be of groups and days. Unlimited, MariaDB reads a table of a million to count a tenth of it."""
WIDTH, HEIGHT, GAP = 8, 28, 2


@dataclass
class Group:
    """One cause, for the template."""

    fingerprint: str
    count: int
    name: str
    message: str
    first: Any
    last: Any
    targets: list[str]
    more_targets: int
    trend: SafeString
    sample: str
    """The address of its latest failure."""
    latest: int
    query: str
    """Of the flat list: the filters as they are, and this group."""


@dataclass
class Groups:
    """All that the template shows; `more` groups are not among them."""

    rows: list[Group]
    more: int


def groups_of(changelist: ChangeList, now: datetime) -> Groups:
    """The error groups of what the list's filters and search leave: four queries, whatever the number of rows."""
    rows = changelist.queryset.prefetch_related(None).defer(None).order_by()
    causes = rows.values("fingerprint").annotate(
        rows=Count("pk"), first=Min("finished_at"), last=Max("finished_at"), latest=Max("pk")
    )
    found = list(causes.order_by("-rows", "-latest")[:MOST])
    more = causes.count() - len(found) if len(found) == MOST else 0
    if more:
        rows = rows.filter(fingerprint__in=[each["fingerprint"] for each in found])
    samples = SchedulerExecution.objects.only("error_class", "error_message").in_bulk(
        [each["latest"] for each in found]
    )
    targets, days = _targets(rows), _days(rows, now)
    return Groups([_group(changelist, each, samples.get(each["latest"]), targets, days, now) for each in found], more)


def _group(
    changelist: ChangeList,
    each: dict[str, Any],
    sample: SchedulerExecution | None,
    targets: dict[str, list[str]],
    days: dict[str, dict[date, int]],
    now: datetime,
) -> Group:
    key = each["fingerprint"]
    names = targets.get(key, [])
    return Group(
        fingerprint=key,
        count=each["rows"],
        # Gone since the count: its message is, too.
        name=shown(sample.error_class, 80) if sample is not None and sample.error_class else EMPTY,
        message=first_line(sample.error_message) if sample is not None else "",
        first=when(each["first"], now),
        last=when(each["last"], now),
        targets=names[:TARGETS],
        more_targets=len(names[TARGETS:]),
        trend=trend(days.get(key, {}), now),
        sample=reverse("admin:scheduling_schedulerexecution_change", args=[each["latest"]]),
        latest=each["latest"],
        query=changelist.get_query_string({"fingerprint": key}, ["group"]),
    )


def _targets(rows: QuerySet[Any]) -> dict[str, list[str]]:
    """By group, its targets, those with the most failures first."""
    found: dict[str, list[str]] = {}
    counted = rows.values_list("fingerprint", "type", "target_name").annotate(rows=Count("pk"))
    for key, type_, name, count in counted.order_by("-rows", "target_name")[:PARTS]:
        said = f"{shown(name or EMPTY, 60)} ({type_})" if type_ else str(_("messages that cannot be read"))
        found.setdefault(key, []).append(f"{said}: {count}")
    return found


def _days(rows: QuerySet[Any], now: datetime) -> dict[str, dict[date, int]]:
    """By group, how many of it failed on each of the last days, in UTC."""
    found: dict[str, dict[date, int]] = {}
    recent = rows.filter(finished_at__gte=_first_day(now))
    counted = recent.annotate(day=TruncDate("finished_at", tzinfo=UTC)).values_list("fingerprint", "day")
    for key, day, count in counted.annotate(rows=Count("pk"))[:PARTS]:
        found.setdefault(key, {})[day] = count
    return found


def _first_day(now: datetime) -> datetime:
    midnight = now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    return midnight - timedelta(days=DAYS - 1)


def trend(counts: dict[date, int], now: datetime) -> SafeString:
    """A bar for each of the last days; days without a failure are a line on the ground."""
    first = _first_day(now).date()
    days = [first + timedelta(days=number) for number in range(DAYS)]
    values = [counts.get(day, 0) for day in days]
    shapes = []
    for place, (day, value, tall) in enumerate(zip(days, values, svg.bars(values, HEIGHT, 3), strict=True)):
        height = tall if value else 1
        title = f"{date_format(day, 'j M')}: {value}"
        css = "sch-trend-bar" if value else "sch-trend-none"
        shapes.append(svg.rect(place * (WIDTH + GAP), HEIGHT - height, WIDTH, height, css, title))
    text = ngettext(
        "%(count)d failed in the last %(days)d days; today %(today)d, at most %(top)d on one day",
        "%(count)d failed in the last %(days)d days; today %(today)d, at most %(top)d on one day",
        sum(values),
    )
    label = text % {"count": sum(values), "days": DAYS, "today": values[-1], "top": max(values)}
    return svg.picture(DAYS * (WIDTH + GAP) - GAP, HEIGHT, label, shapes, css="sch-trend")
