"""The page between choosing some of the inbox and acting on them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from django.contrib import admin, messages
from django.contrib.admin import helpers
from django.db.models import Count, QuerySet
from django.http import HttpRequest, HttpResponse
from django.utils import timezone as clock
from django.utils.html import format_html
from django.utils.translation import gettext as _

from scheduling.admin.asked import Asked, must_type
from scheduling.admin.confirm import Confirmation, page
from scheduling.admin.paging import count_of_state
from scheduling.admin.parts import EMPTY, first_line, shown
from scheduling.models import FailedExecution

SAMPLES = 10
GROUPS = 12
SHOWN_COLUMNS = ("pk", "type", "target_name", "execution_key", "error_class", "error_message", "finished_at")


class InboxAsk(admin.ModelAdmin):
    """Gives the inbox that page."""

    def ask(
        self,
        request: HttpRequest,
        queryset: QuerySet[FailedExecution],
        asked: Asked,
        wrong: str,
        *,
        lead: Callable[[int], str],
        action: str,
        **texts: Any,
    ) -> HttpResponse | bool:
        """The page in between, until it was answered as it must be: then False. True: there is nothing to ask.

        Args:
            wrong: what is wrong with the answer, as a sentence; empty if nothing.
        """
        difference = asked.difference(queryset)
        error = difference or asked.untyped() or wrong
        if asked.posted and not error:
            return False
        # What differs is shown as it is now; who only mistyped sees the same page again.
        at = clock.now() if difference or asked.at is None else asked.at
        queryset = replace(asked, at=at).rows(queryset)
        count = count_of_state(queryset)
        if not count:
            text = _("Nothing of what you chose is in the inbox any more: somebody was faster.")
            self.message_user(request, text, messages.WARNING)
            return True
        groups = queryset.order_by().values_list("type", "target_name").annotate(rows=Count("pk")).order_by("-rows")
        rows = [(_group(type_, name), number) for type_, name, number in groups[: GROUPS + 1]]
        if len(rows) > GROUPS:
            rows[GROUPS:] = [(_("others"), count - sum(number for _name, number in rows[:GROUPS]))]
        chosen = ["all"] if asked.across else request.POST.getlist(helpers.ACTION_CHECKBOX_NAME)
        hidden: list[tuple[str, Any]] = [("action", action), ("post", "yes"), ("select_across", int(asked.across))]
        hidden += [("asked_at", at.isoformat()), ("count", count), ("query", asked.now_query), ("key", asked.key)]
        # With "all that match" the address keeps the filter, which is asked again: no list of ids travels.
        hidden += [(helpers.ACTION_CHECKBOX_NAME, pk) for pk in chosen]
        warnings = [_("This is everything that matches the filter and search of the list.")] if asked.across else []
        return page(
            request,
            self,
            Confirmation(
                back=list_behind(request),
                lead=lead(count) % {"count": count},
                groups=rows,
                samples=[_sample(row) for row in bare(queryset)[:SAMPLES]],
                more=max(count - SAMPLES, 0),
                hidden=hidden,
                warnings=warnings,
                error=error if asked.posted else "",
                minutes=asked.minutes or 0,
                offer_canary=action == "republish_selected" and count > 1,
                canary=asked.canary,
                type_count=count if must_type(asked.across, count) else 0,
                **texts,
            ),
        )


def list_behind(request: HttpRequest) -> str:
    """The list that was acted from: all groups, where it was one of them, which may be empty by then."""
    if request.GET.get("group") != "error" or "fingerprint" not in request.GET:
        return request.get_full_path()
    query = request.GET.copy()
    del query["fingerprint"]
    return f"{request.path}?{query.urlencode()}"


def bare(queryset: QuerySet[FailedExecution]) -> QuerySet[FailedExecution]:
    """The few columns that are needed here, without the list's look-ups."""
    return queryset.prefetch_related(None).only(*SHOWN_COLUMNS)


def _group(type_: str, name: str) -> str:
    return f"{shown(name or EMPTY, 80)} ({type_})" if type_ else _("messages that cannot be read")


def _sample(row: FailedExecution) -> Any:
    return format_html(
        "{} <code>{}</code> {}",
        shown(row.target_name or row.type or EMPTY, 80),
        shown(row.execution_key),
        first_line(f"{row.error_class}: {row.error_message}", 120),
    )
