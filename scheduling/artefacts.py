"""Artefacts: links to what an execution left behind, from whoever keeps such things.

An app that stores files for executions registers a provider in its `AppConfig.ready`; the
execution's page shows what all providers offer, and imports none of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from scheduling.logs import get_logger

log = get_logger(__name__)

Link = tuple[str, str]
"""What to show, and the address that the browser is sent to."""

Provider = Callable[[int], Iterable[Link]]
"""Takes an execution's key and gives its links."""

_providers: list[Provider] = []


def register(provider: Provider) -> None:
    """Have `links_for` ask this provider too; a second registration of the same one changes nothing."""
    if provider not in _providers:
        _providers.append(provider)


def links_for(execution_id: int) -> list[Link]:
    """All providers' links, in the order in which they were registered.

    A provider that raises is logged and left out: it must not take the execution's page with it.
    """
    found: list[Link] = []
    for provider in _providers:
        try:
            found.extend(provider(execution_id))
        except Exception:
            log.exception("An artefact provider raised: %r", provider, extra={"execution": execution_id})
    return found
