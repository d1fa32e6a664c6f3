"""Republish and discard: for some of the inbox, or for all that match, each with a page in between."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.utils import timezone as clock
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from scheduling import failed, replay
from scheduling.admin.asked import MOST_MINUTES, Asked
from scheduling.admin.inbox_ask import InboxAsk, bare
from scheduling.admin.paging import count_of_state
from scheduling.admin.parts import shown
from scheduling.admin.selection import in_chunks
from scheduling.admin.trail import record
from scheduling.admin.transport import transport
from scheduling.broker import Broker, BrokerError
from scheduling.core.lifecycle import State
from scheduling.models import FailedExecution, Replay, SchedulerExecution

VIEW_PARAMETERS = ("p", "o", "all", "group", "e")
"""Of the list's address: how it is shown, not what is on it."""

Do = Callable[[list[int], Broker], list[int]]
"""Acts on ids and gives those that it really moved."""


@dataclass
class Done:
    """How many were moved, and how many are still in the inbox although they were tried."""

    count: int = 0
    refused: int = 0


class InboxActions(InboxAsk):
    """Gives the inbox its two actions."""

    def has_republish_permission(self, request: HttpRequest) -> bool:
        """Whether somebody may run failed executions again."""
        return request.user.has_perm("scheduling.republish_failedexecution")

    def has_discard_permission(self, request: HttpRequest) -> bool:
        """Whether somebody may drop failed executions from the inbox."""
        return request.user.has_perm("scheduling.discard_failedexecution")

    @admin.action(permissions=["republish"], description=gettext_lazy("Republish selected: run them again"))
    def republish_selected(self, request: HttpRequest, queryset: QuerySet[FailedExecution]) -> HttpResponse | None:
        """Ask, then move each back to the queue, with its retries at zero; or one of them first, by a replay."""
        asked = Asked.of(request)
        wrong = _("Give minutes as a whole number from 0 to %(most)d.") % {"most": MOST_MINUTES}
        if answer := self.ask(
            request, queryset, asked, wrong if asked.minutes is None else "",
            title=_("Republish failed executions"),
            submit=_("Republish"),
            lead=lambda count: ngettext(
                "%(count)d failed execution will run again, with its retries at zero.",
                "%(count)d failed executions will run again, with their retries at zero.",
                count,
            ),
            action="republish_selected",
            most_minutes=MOST_MINUTES,
        ):  # fmt: skip
            return answer if isinstance(answer, HttpResponse) else None
        if asked.canary:
            self._replay(request, queryset, asked)
            return None
        by, step, minutes = request.user.get_username(), timedelta(0), asked.minutes or 0
        first: datetime | None = None
        if minutes:
            first = clock.now()
            step = timedelta(minutes=minutes) / max(count_of_state(asked.rows(queryset)), 1)

        def republish(ids: list[int], broker: Broker) -> list[int]:
            nonlocal first
            moved = failed.republish(ids, broker, by, first=first, step=step)
            if first is not None:
                first += step * len(moved)  # the next chunk goes on where this one ended
            return moved

        said = f"republish, spread over {minutes} minutes" if minutes else "republish"
        done = self._act(request, queryset, asked, republish, said)
        if done is not None:
            text = ngettext("%(count)d was republished.", "%(count)d were republished.", done.count)
            self._tell(request, queryset, asked, text, done)
        return None

    @admin.action(permissions=["discard"], description=gettext_lazy("Discard selected, with a reason"))
    def discard_selected(self, request: HttpRequest, queryset: QuerySet[FailedExecution]) -> HttpResponse | None:
        """Ask why, then take each out of the inbox; the rows and the reason stay."""
        asked = Asked.of(request)
        if answer := self.ask(
            request, queryset, asked, "" if asked.reason else _("Say why: without a reason nothing is discarded."),
            title=_("Discard failed executions"),
            submit=_("Discard"),
            lead=lambda count: ngettext(
                "%(count)d failed execution will leave the inbox and will not run again.",
                "%(count)d failed executions will leave the inbox and will not run again.",
                count,
            ),
            action="discard_selected",
            ask_reason=True,
            reason=asked.reason,
            danger=True,
        ):  # fmt: skip
            return answer if isinstance(answer, HttpResponse) else None
        by, reason = request.user.get_username(), shown(asked.reason, 1_500)

        def discard(ids: list[int], broker: Broker) -> list[int]:
            return failed.discard(ids, by, reason, broker=broker)

        done = self._act(request, queryset, asked, discard, f"discard: {reason}")
        if done is not None:
            text = ngettext("%(count)d was discarded.", "%(count)d were discarded.", done.count)
            self._tell(request, queryset, asked, text, done)
        return None

    def _act(
        self, request: HttpRequest, queryset: QuerySet[FailedExecution], asked: Asked, do: Do, message: str
    ) -> Done | None:
        """Chunk by chunk: act, then write the trail of what was really moved."""
        done = Done()
        try:
            with transport() as broker:
                for chunk in in_chunks(bare(asked.rows(queryset))):
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

    def _replay(self, request: HttpRequest, queryset: QuerySet[FailedExecution], asked: Asked) -> None:
        """Send the canary; the producers see to the others."""
        rows = asked.rows(queryset).prefetch_related(None).only("pk", "attempt")

        def chosen() -> Iterator[list[tuple[int, int]]]:
            for chunk in in_chunks(rows):
                yield [(row.pk, row.attempt) for row in chunk]

        words, minutes = _in_words(request, asked), asked.minutes or 0
        try:
            with transport() as broker:
                made = replay.start(asked.key, chosen(), broker, request.user, words, minutes)
        except BrokerError as error:
            self.message_user(request, _("The broker cannot be used: %s") % error, messages.ERROR)
            return
        if made is None:
            text = _("It was asked already: a second click does nothing.")
            self.message_user(request, text, messages.WARNING)
            return
        record(request, [made], f"start: {made.total} executions, canary {made.canary}, {words}")
        if made.state == Replay.State.STOPPED.value:
            self.message_user(request, shown(made.reason), messages.WARNING)
            return
        sentences = [
            ngettext(
                "Execution %(canary)d goes first. %(count)d other follows when it has succeeded.",
                "Execution %(canary)d goes first. %(count)d others follow when it has succeeded.",
                made.total - 1,
            )
            % {"canary": made.canary, "count": made.total - 1}
        ]
        if left := (asked.count or 0) - made.total:
            sentences.append(
                _("Not among them: %(count)d, which had left the inbox or did not fit into one request.")
                % {"count": left}
            )
        self.message_user(request, " ".join(sentences), messages.SUCCESS)

    def _tell(
        self, request: HttpRequest, queryset: QuerySet[FailedExecution], asked: Asked, text: str, done: Done
    ) -> None:
        left = max(count_of_state(asked.rows(queryset)) - done.refused, 0)
        seen = asked.count if asked.count is not None else done.count
        gone = seen - done.count - done.refused - left
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


def _in_words(request: HttpRequest, asked: Asked) -> str:
    """What was chosen, for the record: in the database's words, so that records of all languages read alike."""
    if not asked.across:
        return "chosen one by one"
    said = [
        _one_in_words(name, str(value)) for name, value in request.GET.items() if name not in VIEW_PARAMETERS and value
    ]
    return shown("all that match " + ", ".join(said) if said else "all of the inbox", 400)


def _one_in_words(name: str, value: str) -> str:
    if name != "fingerprint":
        return f"{name}={value}"
    row = SchedulerExecution.objects.filter(state=State.FAILED.value, fingerprint=value).only("error_class").first()
    return f"error group {value[:12]}" + (f" ({row.error_class})" if row is not None and row.error_class else "")
