"""Reads what a message tells."""

from __future__ import annotations

from collections.abc import Iterator

from django.db.models import Case, Count, IntegerField, QuerySet, Value, When

from scheduling.alerts.aside import still_allowed
from scheduling.alerts.letter import MOST_LISTED, Digest, Told
from scheduling.core.alert_rules import Severity
from scheduling.logs import get_logger
from scheduling.models import AlertMessage, AlertNotice
from scheduling.processes.database import is_away

log = get_logger(__name__)


def digest_of(message: AlertMessage) -> Digest:
    """The starts and ends that a message tells. What has begun and lasts comes first, the most urgent one first of all.
    Further ones are only counted.

    A row that cannot be read is only counted. What the channel may not be told is left out (`aside`).

    Raises:
        django.db.DatabaseError: the database cannot be reached.
    """
    notices = AlertNotice.objects.filter(still_allowed(message.channel), message=message)
    numbers = dict(notices.order_by().values_list("event").annotate(number=Count("pk")))
    begun = numbers.get(AlertNotice.Event.START, 0)
    return Digest(list(_listed(notices)), begun, sum(numbers.values()) - begun)


def _listed(notices: QuerySet[AlertNotice]) -> Iterator[Told]:
    ranks = [When(alert__severity=severity.value, then=Value(severity.rank)) for severity in Severity]
    rank = Case(*ranks, default=Value(Severity.CRITICAL.rank), output_field=IntegerField())
    lasts = When(event=AlertNotice.Event.START, alert__ended_at=None, then=Value(1))
    lasting = Case(lasts, default=Value(0), output_field=IntegerField())
    keys = notices.order_by(lasting.desc(), rank.desc(), "pk").values_list("pk", flat=True)[:MOST_LISTED]
    for pk in list(keys):
        try:
            notice = notices.select_related("alert").filter(pk=pk).first()
            if notice is not None:
                yield Told.of(notice.alert, notice.event)
        except Exception as error:
            if is_away(error):
                raise
            log.warning("An alert cannot be told: %s: %s", type(error).__name__, error)
