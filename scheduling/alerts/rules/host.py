"""Finds disks that are nearly full."""

from __future__ import annotations

import socket
from collections.abc import Container, Iterator, Sequence

from django.utils.translation import gettext as _

from scheduling.alerts.disks import free_shares
from scheduling.alerts.look import Look
from scheduling.alerts.wanted import Wanted
from scheduling.core.alerts import Situation

PREFIX, OF = "disk ", " of "


def disk(rules: Sequence[Wanted], look: Look) -> Iterator[tuple[Wanted, Situation]]:
    """A disk of this host has less space than the rule wants."""
    own = socket.gethostname()
    shares = free_shares(look.now, look.memory)
    for name, free in shares.items():
        for rule in rules:
            if 100 * free < rule.number:
                yield rule, _nearly_full(name, own, 100 * free, rule.number)
    yield from _unknown(rules, look, own, shares)


def _unknown(
    rules: Sequence[Wanted], look: Look, own: str, shares: Container[str]
) -> Iterator[tuple[Wanted, Situation]]:
    """The alerts about disks of which this process knows nothing: they do not end.

    Another host may have evaluated before. Its alerts stay while a process on it is alive.
    """
    others = {process.host for process in look.present.alive} - {own}
    for rule in rules:
        for one in look.alerts_of([rule]):
            if one.situation is not None:
                name, _of, host = one.situation.key.removeprefix(PREFIX).partition(OF)
                if host in others or (host == own and name not in shares):
                    yield rule, one.situation


def _nearly_full(name: str, host: str, free: float, limit: float) -> Situation:
    facts = {"free": free, "name": name, "host": host, "limit": limit}
    seen = _("On the host %(host)s, the disk of %(name)s has %(free).1f %% free.") % facts
    return Situation(
        f"{PREFIX}{name}{OF}{host}",
        _("disk of %(name)s on the host %(host)s") % facts,
        f"{seen} " + _("The limit is %(limit)g %%.") % facts,
        _("Remove what is not needed, shorten the retention, or enlarge the disk."),
    )
