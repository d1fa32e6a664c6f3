"""Republish and discard: for some of the inbox, or for all that match, each with a page in between."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.contrib import admin, messages
from django.contrib.admin import helpers
from django.db.models import Count, Q, QuerySet
from django.http import HttpRequest, HttpResponse
from django.utils import timezone as clock
from django.utils.dateparse import parse_datetime
from django.utils.html import format_html
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from scheduling import failed
from scheduling.admin.confirm import Confirmation, page
from scheduling.admin.parts import EMPTY, first_line, shown
from scheduling.admin.selection import in_chunks
from scheduling.admin.trail import record
from scheduling.admin.transport import transport
from scheduling.broker import Broker, BrokerError
from scheduling.core.lifecycle import State
from scheduling.models import FailedExecution, SchedulerExecution

SAMPLES = 10
GROUPS = 12
MOST_MINUTES = 24 * 60
SHOWN_COLUMNS = ("pk", "type", "target_name", "execution_key", "error_class", "error_message", "finished_at")

Do = Callable[[list[int], Broker], list[int]]
"""Acts on ids and gives those that it really moved."""


@dataclass
class Done:
    """How many were moved, and how many are still in the inbox although they were tried."""

    count: int = 0
    refused: int = 0


class InboxActions(admin.ModelAdmin):
    """Gives the inbox its two actions."""

    def has_republish_permission(self, request: HttpRequest) -> bool:
        """Whether somebody may run failed executions again."""
        return request.user.has_perm("scheduling.republish_failedexecution")

    def has_discard_permission(self, request: HttpRequest) -> bool:
        """Whether somebody may drop failed executions from the inbox."""
        return request.user.has_perm("scheduling.discard_failedexecution")

    @admin.action(permissions=["republish"], description=gettext_lazy("Republish selected: run them again"))
    def republish_selected(self, request: HttpRequest, queryset: QuerySet[FailedExecution]) -> HttpResponse | None:
        """Ask, then move each back to the queue, with its retries at zero."""
        minutes = _minutes(request)
        if not request.POST.get("post") or minutes is None:
            return self._ask(
                request,
                queryset,
                title=_("Republish failed executions"),
                action="republish_selected",
                submit=_("Republish"),
                lead=lambda count: ngettext(
                    "%(count)d failed execution will run again, with its retries at zero.",
                    "%(count)d failed executions will run again, with their retries at zero.",
                    count,
                ),
                most_minutes=MOST_MINUTES,
                error=_("Give minutes as a whole number from 0 to %(most)d.") % {"most": MOST_MINUTES}
                if minutes is None
                else "",
            )
        by, step = request.user.get_username(), timedelta(0)
        first: datetime | None = None
        if minutes:
            first = clock.now()
            step = timedelta(minutes=minutes) / max(_as_asked(queryset, _asked_at(request)).count(), 1)

        def republish(ids: list[int], broker: Broker) -> list[int]:
            nonlocal first
            moved = failed.republish(ids, broker, by, first=first, step=step)
            if first is not None:
                first += step * len(moved)  # the next chunk goes on where this one ended
            return moved

        said = f"republish, spread over {minutes} minutes" if minutes else "republish"
        done = self._act(request, queryset, republish, said)
        if done is not None:
            text = ngettext("%(count)d was republished.", "%(count)d were republished.", done.count)
            self._tell(request, queryset, text, done)
        return None

    @admin.action(permissions=["discard"], description=gettext_lazy("Discard selected, with a reason"))
    def discard_selected(self, request: HttpRequest, queryset: QuerySet[FailedExecution]) -> HttpResponse | None:
        """Ask why, then take each out of the inbox; the rows and the reason stay."""
        reason = request.POST.get("reason", "").strip()
        if not request.POST.get("post") or not reason:
            return self._ask(
                request,
                queryset,
                title=_("Discard failed executions"),
                action="discard_selected",
                submit=_("Discard"),
                lead=lambda count: ngettext(
                    "%(count)d failed execution will leave the inbox and will not run again.",
                    "%(count)d failed executions will leave the inbox and will not run again.",
                    count,
                ),
                ask_reason=True,
                danger=True,
                error=_("Say why: without a reason nothing is discarded.") if request.POST.get("post") else "",
            )
        by, reason = request.user.get_username(), shown(reason, 1_500)

        def discard(ids: list[int], broker: Broker) -> list[int]:
            return failed.discard(ids, by, reason, broker=broker)

        done = self._act(request, queryset, discard, f"discard: {reason}")
        if done is not None:
            text = ngettext("%(count)d was discarded.", "%(count)d were discarded.", done.count)
            self._tell(request, queryset, text, done)
        return None

    def _ask(
        self,
        request: HttpRequest,
        queryset: QuerySet[FailedExecution],
        *,
        lead: Callable[[int], str],
        action: str,
        **texts: Any,
    ) -> HttpResponse | None:
        across = request.POST.get("select_across") == "1"
        asked_at = _asked_at(request) or clock.now()
        queryset = _as_asked(queryset, asked_at)
        count = queryset.count()
        if not count:
            text = _("Nothing of what you chose is in the inbox any more: somebody was faster.")
            self.message_user(request, text, messages.WARNING)
            return None
        groups = queryset.order_by().values_list("type", "target_name").annotate(rows=Count("pk")).order_by("-rows")
        rows = [(_group(type_, name), number) for type_, name, number in groups[: GROUPS + 1]]
        if len(rows) > GROUPS:
            rows[GROUPS:] = [(_("others"), count - sum(number for _name, number in rows[:GROUPS]))]
        samples = [_sample(row) for row in _bare(queryset)[:SAMPLES]]
        chosen = ["all"] if across else request.POST.getlist(helpers.ACTION_CHECKBOX_NAME)
        hidden: list[tuple[str, Any]] = [("action", action), ("post", "yes"), ("select_across", int(across))]
        hidden += [("asked_at", asked_at.isoformat()), ("count", count)]
        # With "all that match" the address keeps the filter, which is asked again: no list of ids travels.
        hidden += [(helpers.ACTION_CHECKBOX_NAME, pk) for pk in chosen]
        warnings = [_("This is everything that matches the filter and search of the list.")] if across else []
        return page(
            request,
            self,
            Confirmation(
                back=request.get_full_path(),
                lead=lead(count) % {"count": count},
                groups=rows,
                samples=samples,
                more=max(count - SAMPLES, 0),
                hidden=hidden,
                warnings=warnings,
                **texts,
            ),
        )

    def _act(self, request: HttpRequest, queryset: QuerySet[FailedExecution], do: Do, message: str) -> Done | None:
        """Chunk by chunk: act, then write the trail of what was really moved."""
        done = Done()
        try:
            with transport() as broker:
                for chunk in in_chunks(_bare(_as_asked(queryset, _asked_at(request)))):
                    ids = [row.pk for row in chunk]
                    moved = do(ids, broker)
                    rows = SchedulerExecution.objects.filter(pk__in=ids)
                    # Logged on the execution, where its page shows the history; the inbox's row is gone.
                    record(request, rows.filter(pk__in=moved).only("type", "target_name", "execution_key"), message)
                    done.count += len(moved)
                    done.refused += rows.filter(state=State.FAILED.value).count() if len(moved) < len(ids) else 0
        except BrokerError as error:
            self.message_user(request, _("The broker cannot be used: %s") % error, messages.ERROR)
            return None
        return done

    def _tell(self, request: HttpRequest, queryset: QuerySet[FailedExecution], text: str, done: Done) -> None:
        left = max(_as_asked(queryset, _asked_at(request)).count() - done.refused, 0)
        value = request.POST.get("count", "")
        asked = int(value) if value.isdecimal() and len(value) < 10 else done.count
        gone = asked - done.count - done.refused - left
        sentences = [text % {"count": done.count}]
        if gone > 0:
            sentences.append(_("Handled already by somebody else: %(count)d.") % {"count": gone})
        if done.refused:
            sentences.append(
                _("Not possible: %(count)d, whose message cannot be read. Discard them.") % {"count": done.refused}
            )
        if left:
            sentences.append(
                _("Left over: %(count)d, as one request has only so much time. Do it again.") % {"count": left}
            )
        whole = done.count and not left and not done.refused
        self.message_user(request, " ".join(sentences), messages.SUCCESS if whole else messages.WARNING)


def _asked_at(request: HttpRequest) -> datetime | None:
    """When the page in between was made; what has failed since was not on it, and is left alone."""
    try:
        found = parse_datetime(request.POST.get("asked_at", ""))
    except ValueError:
        return None
    return found if found is not None and found.tzinfo is not None else None


def _minutes(request: HttpRequest) -> int | None:
    """Over how many minutes to spread; None for what is no such number."""
    text = request.POST.get("minutes", "").strip() or "0"
    if not (text.isascii() and text.isdecimal() and len(text) <= 4):
        return None
    return int(text) if int(text) <= MOST_MINUTES else None


def _as_asked(queryset: QuerySet[FailedExecution], asked_at: datetime | None) -> QuerySet[FailedExecution]:
    if asked_at is None:
        return queryset
    return queryset.filter(Q(finished_at__lte=asked_at) | Q(finished_at__isnull=True))


def _bare(queryset: QuerySet[FailedExecution]) -> QuerySet[FailedExecution]:
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
