"""The confirmation page of the inbox's actions."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from django.contrib import messages
from django.db.models import Count, QuerySet
from django.http import HttpRequest, HttpResponse
from django.utils import timezone as clock
from django.utils.translation import gettext as _

from scheduling.admin.common.confirm import SAMPLES, Confirmation, action_fields, key_of
from scheduling.admin.common.pages import Pages
from scheduling.admin.inbox import view
from scheduling.admin.inbox.answer import Answer, InboxForm
from scheduling.admin.inbox.groups import target_words
from scheduling.admin.ui.execution_names import execution_title
from scheduling.admin.ui.text import first_line
from scheduling.core.known_sentences import in_language
from scheduling.models import FailedExecution
from scheduling.models.counts import count_of_state
from scheduling.models.visibility import Visibility, visibility_of

GROUPS = 12
SHOWN_COLUMNS = ("pk", "type", "target_name", "execution_key", "error_class", "error_message", "finished_at")


class InboxConfirmation(Pages):
    """Adds the confirmation page to the inbox."""

    def ask(
        self,
        request: HttpRequest,
        queryset: QuerySet[FailedExecution],
        asked: Answer,
        questions: type[InboxForm],
        *,
        lead: Any,
        action: str,
        **texts: Any,
    ) -> HttpResponse | dict[str, Any] | None:
        """Show the confirmation page until the operator has answered it with valid values.

        Args:
            questions: the form class of the page.
            lead: the page's first sentence, as a lazy translation with a singular and a plural form.
            action: the name of the action. The page's POST contains this name.
            texts: further arguments of `Confirmation`.

        Returns:
            The confirmation page, or the form's values once they are valid. The result is None if all chosen executions
            have left the inbox.
        """
        difference = asked.difference(queryset)
        filled = asked.posted and not difference
        if filled and (form := questions(asked.across, asked.count or 0, request.POST)).is_valid():
            return form.cleaned_data
        # If the selection has changed, the page shows the present selection. If only a form value was wrong, the page
        # shows the same selection again.
        at = clock.now() if difference or asked.at is None else asked.at
        queryset = replace(asked, at=at).rows(queryset)
        count = count_of_state(queryset)
        if not count:
            text = _("All of the chosen runs were already handled by someone else.")
            self.message_user(request, text, messages.WARNING)
            return None
        groups = queryset.order_by().values_list("type", "target_name").annotate(rows=Count("pk")).order_by("-rows")
        rows = [(target_words(type_, name), number) for type_, name, number in groups[: GROUPS + 1]]
        if len(rows) > GROUPS:
            rows[GROUPS:] = [(_("others"), count - sum(number for _name, number in rows[:GROUPS]))]
        shown = [("asked_at", at.isoformat()), ("count", count), ("query", request.GET.urlencode())]
        # If the number of rows has changed, the operator must type the new number. The other form values are kept.
        initial = {**({"canary": False} if asked.posted else {}), **request.POST.dict(), "typed": ""}
        return Confirmation(
            back=list_behind(request),
            lead=lead % {"count": count},
            groups=rows,
            samples=_samples(queryset, visibility_of(request.user)),
            some=_("Some of them, the newest first"),
            more=max(count - SAMPLES, 0),
            hidden=[*action_fields(request, action), *shown, ("key", key_of(request))],
            warnings=[_("All failures of this selection, including those that are not listed below.")]
            if asked.across
            else [],
            error=difference,
            form=questions(asked.across, count, request.POST if filled else None, initial=initial),
            **texts,
        ).response(request, self)


def list_behind(request: HttpRequest) -> str:
    """The URL of the list to show after an action.

    After an action on one error group, the operator returns to the view of all error groups, because the group may be
    empty now.
    """
    if request.GET.get(view.PARAMETER) != view.BY_ERROR or "fingerprint" not in request.GET:
        return request.get_full_path()
    query = request.GET.copy()
    del query["fingerprint"]
    return f"{request.path}?{query.urlencode()}"


def bare(queryset: QuerySet[FailedExecution]) -> QuerySet[FailedExecution]:
    """The rows without the list's prefetches, and with only the columns that the page and audit entries need."""
    return queryset.prefetch_related(None).only(*SHOWN_COLUMNS)


def _samples(queryset: QuerySet[FailedExecution], visible: Visibility) -> list[str]:
    """The newest runs as on their pages, each with its error: `Import orders DE, 20:19 CET: ValueError: no total`."""
    rows = visible.with_schedules(queryset.defer("params").prefetch_related(None).order_by("-pk"))
    now = clock.now()
    return [
        _("%(run)s: %(error)s")
        % {
            "run": execution_title(row, now),
            "error": first_line(f"{row.error_class}: {in_language(row.error_message)}", 120),
        }
        for row in rows[:SAMPLES]
    ]
