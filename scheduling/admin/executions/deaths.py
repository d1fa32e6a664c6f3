"""Makes the table of the header `x-death`: how often, and why, RabbitMQ moved the message out of a queue."""

from __future__ import annotations

from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from scheduling.admin.ui.times import EMPTY, time_tag
from scheduling.core import deaths
from scheduling.core.deaths import Death
from scheduling.core.text import one_line
from scheduling.execution.death_records import recorded_deaths


def death_rows(execution_id: int) -> list[dict[str, Any]]:
    """The lines of the table, the newest first; empty if the execution's message had no usable `x-death`.

    The keys of a line are `sentence`, `queue`, `reason`, `exchange`, `keys`, `count` and `time`.
    """
    return [_row(death) for death in recorded_deaths(execution_id)]


def _row(death: Death) -> dict[str, Any]:
    return {
        "sentence": sentence(death),
        "queue": one_line(death.queue),
        "reason": one_line(death.reason),
        # Each queue is bound to the default exchange, whose name is empty.
        "exchange": one_line(death.exchange) or _("default"),
        "keys": [one_line(key) for key in death.routing_keys],
        "count": EMPTY if death.count is None else death.count,
        "time": time_tag(death.at),
    }


def sentence(death: Death) -> str:
    """What happened to the message, in one plain sentence. Without a count, it does not say how often it happened."""
    words = {"queue": one_line(death.queue), "count": death.count, "reason": one_line(death.reason)}
    return (_once(death.reason) if death.count is None else _counted(death.reason, death.count)) % words


def _once(reason: str) -> str:
    match reason:
        case deaths.DELIVERY_LIMIT:
            return _("It was delivered more often than the limit of %(queue)s allows.")
        case deaths.EXPIRED:
            return _("RabbitMQ moved it out of %(queue)s because its time there was over.")
        case deaths.REJECTED:
            return _("A consumer rejected it in %(queue)s.")
        case deaths.MAXLEN:
            return _("RabbitMQ moved it out of %(queue)s because the queue was full.")
    return _("It left %(queue)s for the reason “%(reason)s”.")


def _counted(reason: str, count: int) -> str:
    match reason:
        case deaths.EXPIRED:
            return ngettext(
                "RabbitMQ moved it out of %(queue)s once because its time there was over.",
                "RabbitMQ moved it out of %(queue)s %(count)d times because its time there was over.",
                count,
            )
        case deaths.REJECTED:
            return ngettext(
                "A consumer rejected it once in %(queue)s.",
                "A consumer rejected it %(count)d times in %(queue)s.",
                count,
            )
        case deaths.MAXLEN:
            return ngettext(
                "RabbitMQ moved it out of %(queue)s once because the queue was full.",
                "RabbitMQ moved it out of %(queue)s %(count)d times because the queue was full.",
                count,
            )
    return _once(reason)
