"""Finds that one node of a broker cluster carries all messages."""

from __future__ import annotations

from collections.abc import Iterator

from django.utils.translation import gettext as _

from scheduling.broker import address_count
from scheduling.conf import get_conf
from scheduling.core.setting_values import ConfError
from scheduling.monitoring.findings.finding import Finding, warn


def examine() -> Iterator[Finding]:
    """Warn if CRON_BROKER_URL names several nodes and the queues are classic: each of them is on one node only."""
    try:
        conf = get_conf()
        nodes = address_count(conf.broker_url)
    except ConfError:  # the doctor's own check of the settings says it
        return
    if nodes > 1 and conf.queue_type == "classic":
        seen = _("CRON_BROKER_URL names %(count)s addresses, but the queues are classic: they are on one node.") % {
            "count": nodes
        }
        advice = _("While this node is away, nothing runs. Set CRON_QUEUE_TYPE=quorum (docs/brokers.md).")
        yield warn("one node", seen, advice)
