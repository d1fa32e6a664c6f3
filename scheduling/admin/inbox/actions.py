"""The inbox's actions: republish and discard.

An operator selects some rows, or all rows that match the list's filter and search. Each action asks for confirmation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.utils import timezone as clock
from django.utils.html import format_html_join
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext, ngettext_lazy

from scheduling.admin.common.batches import allowed_only
from scheduling.admin.common.broker import open_broker
from scheduling.admin.common.confirm import key_of
from scheduling.admin.common.continuation import remaining
from scheduling.admin.inbox.answer import Answer, DiscardForm, RepublishForm
from scheduling.admin.inbox.confirmation import InboxConfirmation, bare
from scheduling.admin.inbox.selection_words import selection_words
from scheduling.broker import Broker, BrokerError
from scheduling.core.known_sentences import for_reader
from scheduling.core.lifecycle import State
from scheduling.core.text import visible_text
from scheduling.handlers.permission import refused_executions
from scheduling.inbox import actions as inbox_actions
from scheduling.inbox import replay
from scheduling.models import FailedExecution, Replay, SchedulerExecution
from scheduling.models.counts import count_of_state
from scheduling.operations.audit import record
from scheduling.operations.batches import in_chunks

Do = Callable[[list[int], Broker], list[int]]
"""A function that acts on rows. It gets the ids of the rows, and returns the ids of the rows that left the inbox."""

MINUTE = timedelta(minutes=1)
LONGEST_SPREAD = timedelta(days=1)


class Deed(NamedTuple):
    """What an action does, and what the next request needs if this request ends before all is done.

    Args:
        action: the name of the action.
        rest: gets the number of executions that are left, and returns the operator's answers for them.
    """

    action: str
    do: Do
    rest: Callable[[int], dict[str, Any]]


class Done(NamedTuple):
    """What an action did.

    Args:
        text: the first sentence for the operator.
        moved: how many executions left the inbox through this action.
        refused: how many executions this action cannot change.
        unreadable: how many of these have a message that cannot be read. The schedules of the others run alone, and
            another execution is open.
        still: how many selected executions are still in the inbox. This number includes the refused executions.
    """

    text: str
    moved: int
    refused: int
    unreadable: int
    still: int


class InboxActions(InboxConfirmation):
    """The inbox's two actions."""

    def has_republish_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("scheduling.republish_failedexecution")

    def has_discard_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("scheduling.discard_failedexecution")

    @admin.action(permissions=["republish"], description=gettext_lazy("Republish selected: run them again"))
    def republish_selected(self, request: HttpRequest, queryset: QuerySet[FailedExecution]) -> HttpResponse | None:
        """Ask for confirmation, then move each execution back to the queue, with its number of retries set to zero.

        If the operator chose a canary, start a replay instead.
        """
        asked = Answer.of(request)
        queryset = allowed_only(self, request, queryset, refused_executions(request.user))
        answer = self.ask(
            request, queryset, asked, RepublishForm,
            title=_("Republish failed executions"),
            submit=_("Republish"),
            lead=ngettext_lazy(
                "%(count)d failed run will be queued again; the retry count starts over.",
                "%(count)d failed runs will be queued again; the retry count starts over.",
                "count",
            ),
            action="republish_selected",
        )  # fmt: skip
        if not isinstance(answer, dict):
            return answer
        by, step, minutes = request.user.get_username(), timedelta(0), answer.get("minutes") or 0
        if answer.get("canary"):
            self._replay(request, queryset, asked, minutes)
            return None
        first: datetime | None = None
        if minutes:
            now = clock.now()
            first = asked.start if asked.start is not None and now < asked.start < now + LONGEST_SPREAD else now
            step = timedelta(minutes=minutes) / max(count_of_state(asked.rows(queryset)), 1)

        def republish(ids: list[int], broker: Broker) -> list[int]:
            nonlocal first
            moved = inbox_actions.republish(ids, broker, by, first=first, step=step)
            if first is not None:
                first += step * len(moved)  # the next chunk starts after the last execution of this chunk
            return moved

        def rest(still: int) -> dict[str, Any]:
            return {"minutes": -(-still * step // MINUTE), "start": first.isoformat()} if first is not None else {}

        said = f"republish, spread over {minutes} minutes" if minutes else "republish"
        text = ngettext_lazy("%(count)d was republished.", "%(count)d were republished.", "count")
        self._act(request, queryset, asked, Deed("republish_selected", republish, rest), said, text)
        return None

    @admin.action(permissions=["discard"], description=gettext_lazy("Discard selected, with a reason"))
    def discard_selected(self, request: HttpRequest, queryset: QuerySet[FailedExecution]) -> HttpResponse | None:
        """Ask for a reason, then take each execution out of the inbox. The rows stay in the table, with the reason."""
        asked = Answer.of(request)
        queryset = allowed_only(self, request, queryset, refused_executions(request.user))
        answer = self.ask(
            request, queryset, asked, DiscardForm,
            title=_("Discard failed executions"),
            submit=_("Discard"),
            lead=ngettext_lazy(
                "%(count)d failed run will leave the inbox and will not run again.",
                "%(count)d failed runs will leave the inbox and will not run again.",
                "count",
            ),
            action="discard_selected",
            danger=True,
        )  # fmt: skip
        if not isinstance(answer, dict):
            return answer
        by, reason = request.user.get_username(), visible_text(answer["reason"], 1_500)

        def discard(ids: list[int], broker: Broker) -> list[int]:
            return inbox_actions.discard(ids, by, reason, broker=broker)

        text = ngettext_lazy("%(count)d was discarded.", "%(count)d were discarded.", "count")
        deed = Deed("discard_selected", discard, lambda _still: {"reason": answer["reason"]})
        self._act(request, queryset, asked, deed, f"discard: {reason}", text)
        return None

    def _act(
        self,
        request: HttpRequest,
        queryset: QuerySet[FailedExecution],
        asked: Answer,
        deed: Deed,
        message: str,
        text: Any,
    ) -> None:
        """Act on the rows in chunks, write an audit entry for each row that left the inbox, and tell the operator."""
        done = refused = unreadable = 0
        try:
            with open_broker() as broker:
                for chunk in in_chunks(bare(asked.rows(queryset))):
                    ids = [row.pk for row in chunk]
                    moved = deed.do(ids, broker)
                    rows = SchedulerExecution.objects.filter(pk__in=ids)
                    # The audit entry belongs to the execution, because the row has left the inbox. The page of
                    # the execution shows the entry.
                    record(
                        request,
                        rows.filter(pk__in=moved).only("type", "target_name", "execution_key", "group"),
                        message,
                    )
                    done += len(moved)
                    if len(moved) < len(ids):
                        still = rows.filter(state=State.FAILED.value)
                        refused += still.count()
                        unreadable += still.filter(type="").count()
        except BrokerError as error:
            self.message_user(request, _("The broker cannot be used: %s") % error, messages.ERROR)
        else:
            left = count_of_state(asked.rows(queryset))
            self._tell(request, asked, deed, Done(text % {"count": done}, done, refused, unreadable, left))

    def _replay(self, request: HttpRequest, queryset: QuerySet[FailedExecution], asked: Answer, minutes: int) -> None:
        """Start a replay: republish the canary. The producers republish the other executions later."""
        rows = asked.rows(queryset).prefetch_related(None).only("pk", "attempt")

        def chosen() -> Iterator[list[tuple[int, int]]]:
            for chunk in in_chunks(rows):
                yield [(row.pk, row.attempt) for row in chunk]

        words = selection_words(request, queryset, asked)
        try:
            with open_broker() as broker:
                made = replay.start(key_of(request), chosen(), broker, request.user, words, minutes)
        except BrokerError as error:
            self.message_user(request, _("The broker cannot be used: %s") % error, messages.ERROR)
            return
        if made is None:
            self.message_user(request, _("Already started. The second click did nothing."), messages.WARNING)
            return
        record(request, [made], f"start: {made.total} executions, canary {made.canary}, {words}")
        if made.state == Replay.State.STOPPED.value:
            self.message_user(request, for_reader(made.reason), messages.WARNING)
            return
        text = ngettext(
            "Execution %(canary)d goes first. %(count)d other follows when it has succeeded.",
            "Execution %(canary)d goes first. %(count)d others follow when it has succeeded.",
            made.total - 1,
        ) % {"canary": made.canary, "count": made.total - 1}
        if left := (asked.count or 0) - made.total:
            said = _("Left out: %(count)d, which were already handled or did not fit into one request.")
            text += " " + said % {"count": left}
        self.message_user(request, text, messages.SUCCESS)

    def _tell(self, request: HttpRequest, asked: Answer, deed: Deed, done: Done) -> None:
        """Tell the operator how many executions left the inbox, and what happened to the other executions."""
        left = max(done.still - done.refused, 0)
        seen = asked.count if asked.count is not None else done.moved
        gone = seen - done.moved - done.refused - left
        sentences = [done.text]
        if gone > 0:
            sentences.append(_("Already handled: %(count)d.") % {"count": gone})
        if done.unreadable:
            said = _("Not possible: %(count)d with an unreadable message. Discard them.")
            sentences.append(said % {"count": done.unreadable})
        if done.refused > done.unreadable:
            said = _("Not now: %(count)d, because another run of the same schedule is not over.")
            sentences.append(said % {"count": done.refused - done.unreadable})
        if left:
            # The next request is about the same executions as this one, so it needs no new confirmation.
            at = (asked.at or clock.now()).isoformat()
            seen_again = {"asked_at": at, "count": done.still, "typed": done.still, "query": request.GET.urlencode()}
            sentences.append(remaining(request, left, deed.action, seen_again | deed.rest(done.still)))
        whole = done.moved and not left and not done.refused
        message = format_html_join(" ", "{}", ((sentence,) for sentence in sentences))
        self.message_user(request, message, messages.SUCCESS if whole else messages.WARNING)
