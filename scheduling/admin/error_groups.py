"""The inbox by cause: thousands of failures read as a few error groups."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any

from django.contrib.admin.views.main import ChangeList
from django.urls import reverse
from django.utils.formats import date_format
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from scheduling.admin import svg
from scheduling.admin.error_tally import NEWEST, Cause, Target, tally
from scheduling.admin.parts import EMPTY, first_line, shown, when
from scheduling.models import SchedulerExecution

MOST = 100
"""Groups on the page, the largest first; a filter or the search finds the others."""
TARGETS = 3
DAYS = 14
WIDTH, HEIGHT, GAP = 8, 28, 2


@dataclass
class Group:
    """One cause, for the template."""

    fingerprint: str
    count: int
    capped: bool
    """There may be more: only the newest failures were counted."""
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
    act: str
    """Where its buttons lead: this group, and afterwards back to all of them."""


@dataclass
class Groups:
    """All that the template shows; `more` groups are not among them."""

    rows: list[Group]
    more: int
    newest: int
    """So many of the newest failures were counted; 0: all were."""


def groups_of(changelist: ChangeList, now: datetime) -> Groups:
    """The error groups of what the list's filters and search leave: two queries, whatever the number of rows."""
    counted = tally(changelist.queryset)
    found = counted.causes[:MOST]
    samples = SchedulerExecution.objects.only("error_class", "error_message").in_bulk([each.latest for each in found])
    return Groups(
        [_group(changelist, each, samples.get(each.latest), counted.capped, now) for each in found],
        more=len(counted.causes) - len(found),
        newest=NEWEST if counted.capped else 0,
    )


def _group(
    changelist: ChangeList, each: Cause, sample: SchedulerExecution | None, capped: bool, now: datetime
) -> Group:
    names = [f"{_target(target)}: {count}" for target, count in _most_first(each.targets)]
    return Group(
        fingerprint=each.fingerprint,
        count=each.count,
        capped=capped,
        # Gone since the count: its message is, too.
        name=shown(sample.error_class, 80) if sample is not None and sample.error_class else EMPTY,
        message=first_line(sample.error_message) if sample is not None else "",
        first=when(each.first, now),
        last=when(each.last, now),
        targets=names[:TARGETS],
        more_targets=len(names[TARGETS:]),
        trend=trend(each.days, now),
        sample=reverse("admin:scheduling_schedulerexecution_change", args=[each.latest]),
        latest=each.latest,
        query=changelist.get_query_string({"fingerprint": each.fingerprint}, ["group"]),
        act=changelist.get_query_string({"fingerprint": each.fingerprint, "group": "error"}),
    )


def _most_first(targets: Counter[Target]) -> list[tuple[Target, int]]:
    return sorted(targets.items(), key=lambda item: (-item[1], item[0][1]))


def _target(target: Target) -> str:
    type_, name = target
    return f"{shown(name or EMPTY, 60)} ({type_})" if type_ else str(_("messages that cannot be read"))


def _first_day(now: datetime) -> datetime:
    midnight = now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    return midnight - timedelta(days=DAYS - 1)


def trend(counts: Mapping[date, int], now: datetime) -> SafeString:
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
