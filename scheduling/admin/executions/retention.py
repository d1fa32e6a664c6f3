"""The page of retention: the rules in force, and what the next clean-up would remove."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.utils import timezone as clock
from django.utils.translation import gettext as _

from scheduling.admin.common.pages import READ, Page, Pages
from scheduling.admin.ui.links import scheduler_url
from scheduling.admin.ui.retention_words import always_kept, days_words, retention_sentences
from scheduling.conf import get_conf
from scheduling.core.retention import RetentionInvalid
from scheduling.core.text import visible_text
from scheduling.execution.retention import prune
from scheduling.execution.retention.policies import HAS_OWN
from scheduling.models import Scheduler
from scheduling.models.counts import Count
from scheduling.models.labels import RETENTION_RULES
from scheduling.models.scheduler import load_names
from scheduling.models.visibility import visibility_of


class RetentionPage(Pages):
    """Adds the page to the executions. A link below their list leads to it."""

    pages: tuple[Page, ...] = (Page("retention", "view", "retention/", READ),)
    count_seconds = 1.0
    """How long the page counts what the next clean-up removes. The executions may be millions."""
    most_schedules = 100
    """How many schedules with own values the page shows."""

    def retention_view(self, request: HttpRequest) -> HttpResponse:
        """The rules of the settings, those of single schedules, and the result of a dry run."""
        conf = get_conf()
        rules = retention_sentences(conf.retention())
        if conf.retention_one_time_days is not None:
            text = _("Spent one-time schedules are removed %(days)s after their date. Their runs stay.")
            rules.append(text % {"days": days_words(conf.retention_one_time_days)})
        context = {
            "title": _("Retention"),
            "rules": rules,
            "always": always_kept(),
            **self._counts(request),
            **self._own(request),
        }
        return self.page_response(request, "admin/scheduling/schedulerexecution/retention.html", **context)

    def _counts(self, request: HttpRequest) -> dict[str, Any]:
        """What the next clean-up removes. It works on the rows of all groups, so only users who see all may see it."""
        if visibility_of(request.user).is_limited:
            return {"counts": [], "complete": True}
        done = prune(clock.now(), dry_run=True, max_seconds=self.count_seconds)
        counts = [(words, Count(done.rules[rule], not done.complete)) for rule, words in RETENTION_RULES.items()]
        return {"counts": counts, "complete": done.complete}

    def _own(self, request: HttpRequest) -> dict[str, Any]:
        """The schedules with own values; nothing if the user may not see schedules."""
        if not request.user.has_perm("scheduling.view_scheduler"):
            return {"schedules": [], "more": False}
        found = list(visibility_of(request.user).schedules().filter(HAS_OWN).order_by("pk")[: self.most_schedules + 1])
        rows = found[: self.most_schedules]
        load_names(rows)
        lines = [(scheduler_url(row.pk), visible_text(row, 120), _sentences(row)) for row in rows]
        return {"schedules": lines, "more": len(found) > len(rows)}


def _sentences(row: Scheduler) -> list[str]:
    try:
        return retention_sentences(row.retention_policy(get_conf().retention()))
    except RetentionInvalid as error:
        said = _("Nothing of this schedule is removed, because its retention cannot be used: %s") % error
        return [visible_text(said, 300)]
