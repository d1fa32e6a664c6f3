"""Findings about consumers of one queue that know different handlers, because a deploy did not finish."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple

from django.db.models import Count, Q
from django.utils.translation import gettext as _

from scheduling.core.text import visible_text
from scheduling.models import KnownHandler, Process
from scheduling.models.labels import queue_label
from scheduling.models.time_words import format_span
from scheduling.monitoring.findings.finding import Finding, Named, named, some, warn

DEPLOY_TIME = timedelta(minutes=10)
"""A deploy that replaces the consumers for longer than this did not finish."""

MOST_HANDLERS = 100
"""So many differing handlers are read at most."""


class Differing(NamedTuple):
    """A handler that not all sets of handlers know with the same contract.

    `contracts` maps the primary keys of those sets that know the handler to the hash of its params contract.
    """

    type: str
    name: str
    contracts: dict[int, str]


@dataclass(frozen=True)
class Comparison:
    """How the handlers of one process differ from those of other processes. Each attribute lists names of handlers."""

    lacking: list[str]
    """Others know these."""
    extra: list[str]
    """No other process knows these."""
    changed: list[str]
    """Others know these with other parameters."""

    @property
    def words(self) -> list[str]:
        """Sentences, each with the first names. Empty if nothing differs."""
        found = []
        if self.lacking:
            found.append(_("does not know %(names)s") % {"names": some(self.lacking)})
        if self.extra:
            found.append(_("also knows %(names)s") % {"names": some(self.extra)})
        if self.changed:
            found.append(_("has other parameters of %(names)s") % {"names": some(self.changed)})
        return found


def differing(sets: Collection[int]) -> list[Differing]:
    """The handlers in which sets of handlers differ, at most `MOST_HANDLERS`, ordered by type and name."""
    known = KnownHandler.objects.filter(handler_set__in=sets)
    groups = known.values("type", "name").annotate(sets=Count("id"), contracts=Count("contract", distinct=True))
    unlike = groups.filter(Q(sets__lt=len(sets)) | Q(contracts__gt=1)).order_by("type", "name")
    keys = [(row["type"], row["name"]) for row in unlike[:MOST_HANDLERS]]
    contracts: dict[tuple[str, str], dict[int, str]] = defaultdict(dict)
    rows = known.filter(name__in=[name for _type, name in keys])
    for pk, type_, name, contract in rows.values_list("handler_set", "type", "name", "contract"):
        contracts[type_, name][pk] = contract
    return [Differing(*key, contracts[key]) for key in keys]


def compared(own: int, unlike: Iterable[Differing]) -> Comparison:
    """How the set of handlers `own` differs from the other sets in `unlike`."""
    found = Comparison([], [], [])
    for handler in unlike:
        name = visible_text(f"{handler.type} {handler.name}", 80)
        if own not in handler.contracts:
            found.lacking.append(name)
        elif len(handler.contracts) == 1:
            found.extra.append(name)
        elif len(set(handler.contracts.values())) > 1:
            found.changed.append(name)
    return found


def examine(alive: Iterable[Process], now: datetime) -> Iterator[Finding]:
    """Report for each queue whether its consumers have known different handlers for `DEPLOY_TIME`."""
    consumers = [
        process for process in alive if process.kind == Process.Kind.CONSUMER and process.known_set is not None
    ]
    for queue in sorted({queue for process in consumers for queue in process.queue.split(",") if queue}):
        serving = [process for process in consumers if process.queue and process.serves(queue)]
        first: dict[int, datetime] = {}
        for process in serving:
            pk = process.known_set or 0
            first[pk] = min(process.started_at, first.get(pk, process.started_at))
        if len(first) < 2 or now - max(first.values()) < DEPLOY_TIME:
            continue
        yield from _differ(serving, first, queue_label(queue), now)


def _differ(serving: list[Process], first: dict[int, datetime], queue: str, now: datetime) -> Iterator[Finding]:
    newest = max(first, key=lambda pk: first[pk])
    unlike = differing(first)
    older = sorted((process for process in serving if process.known_set != newest), key=lambda row: row.pk)

    def describe(process: Process) -> Named:
        name = f"{process.get_kind_display()} {visible_text(process.container_id, 60)}"
        return Named(name, "; ".join(compared(process.known_set or 0, unlike).words))

    finding = warn(
        "handlers",
        _("Consumers of the queue “%(queue)s” have known different handlers for %(time)s. Older ones: %(count)s."),
        _(
            "A deploy did not finish: replace these consumers. "
            "Meanwhile, each run waits for a consumer that knows its handler and accepts its parameters."
        ),
    )
    yield from named(finding, older, describe, queue=queue, time=format_span((now - first[newest]).total_seconds()))
