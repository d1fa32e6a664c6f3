"""The inbox's view by error group. It shows thousands of failures as a few groups."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from types import SimpleNamespace

from django.contrib.admin.views.main import ChangeList
from django.http import HttpRequest
from django.utils.formats import date_format
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from scheduling.admin.common.next_page import with_next
from scheduling.admin.inbox import view
from scheduling.admin.ui import svg
from scheduling.admin.ui.links import admin_url, execution_url
from scheduling.admin.ui.targets import target_tag
from scheduling.admin.ui.text import first_line
from scheduling.admin.ui.times import EMPTY, time_with_relative
from scheduling.core.known_sentences import in_language
from scheduling.core.text import visible_text
from scheduling.handlers.permission import lacks_all
from scheduling.inbox.causes import Cause
from scheduling.models.visibility import visibility_of
from scheduling.operations import failure_groups
from scheduling.operations.failure_groups import groups_among

TARGETS = 3
DAYS = 14
WIDTH, HEIGHT, GAP = 8, 28, 2


@dataclass
class Groups:
    """What the template shows. `rows` are the groups, and `more` is the number of groups that are left out."""

    rows: list[SimpleNamespace]
    more: int
    newest: int
    """How many of the newest failures were counted; 0 if all failures were counted."""


def target_words(type_: str, name: str) -> str:
    """A target in words: `Sales by region (report)`. A message that cannot be read has no target."""
    return format_html("{} ({})", target_tag(type_, name), type_) if type_ else _("messages that cannot be read")


def groups_of(request: HttpRequest, changelist: ChangeList, now: datetime) -> Groups:
    """The error groups of the failures that match the list's filters and search. This takes three queries."""
    found = groups_among(changelist.queryset, visibility_of(request.user))
    rows = [_group(request, changelist, cause, found, now) for cause in found.causes]
    return Groups(rows, found.more, found.newest)


def _group(
    request: HttpRequest,
    changelist: ChangeList,
    cause: Cause,
    found: failure_groups.Groups,
    now: datetime,
) -> SimpleNamespace:
    sample, capped = found.samples.get(cause.latest), bool(found.newest)
    targets = sorted(cause.targets.items(), key=lambda item: (-item[1], item[0][1]))
    names = [format_html("{}: {}", target_words(*target), count) for target, count in targets]
    return SimpleNamespace(
        fingerprint=cause.fingerprint,
        count=cause.count,
        capped=capped,
        # The sample may have been deleted after the first query.
        name=visible_text(sample.error_class, 80) if sample is not None and sample.error_class else EMPTY,
        message=first_line(in_language(sample.error_message)) if sample is not None else "",
        first=time_with_relative(cause.first_end, now),
        release=visible_text(found.release(cause)),
        last=time_with_relative(max(cause.ends, default=None), now),
        targets=names[:TARGETS],
        more_targets=len(names[TARGETS:]),
        trend=trend(Counter(end.astimezone(UTC).date() for end in cause.ends), now),
        sample=execution_url(cause.latest),
        latest=cause.latest,
        query=changelist.get_query_string({"fingerprint": cause.fingerprint}, [view.PARAMETER]),
        # The group's buttons post to a URL with this query string. Because of the parameter `group`, the
        # operator sees the view by error group again after the action.
        act=changelist.get_query_string({"fingerprint": cause.fingerprint, view.PARAMETER: view.BY_ERROR}),
        single=_single(request, cause) if cause.count == 1 and not capped else {},
        may_act=not lacks_all(request.user, cause.targets),
    )


def _single(request: HttpRequest, cause: Cause) -> dict[str, str]:
    """The addresses of the short pages that republish and discard the only failure of a group."""
    readable = all(type_ for type_, _name in cause.targets)
    pages = ("republish", "discard") if readable else ("discard",)
    return {page: with_next(admin_url(f"scheduling_failedexecution_{page}", cause.latest), request) for page in pages}


def trend(counts: Mapping[date, int], now: datetime) -> SafeString:
    """A picture with one bar for each of the last `DAYS` days. A day without a failure is a thin line."""
    first = now.astimezone(UTC).date() - timedelta(days=DAYS - 1)
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
