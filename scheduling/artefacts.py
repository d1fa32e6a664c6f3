"""Collects the links to the artefacts of an execution.

An app that stores files for executions registers a provider in its `AppConfig.ready`. The provider returns links. The
execution's page then shows the links of all apps without importing the apps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from scheduling.logs import get_logger

log = get_logger(__name__)

Link = tuple[str, str]
"""The text and the URL of a link."""

Provider = Callable[[int], Iterable[Link]]
"""Takes the id of an execution and returns the links to the execution's artefacts."""

_providers: list[Provider] = []


def register(provider: Provider) -> None:
    """Add a provider. A provider that is registered already is not added again."""
    if provider not in _providers:
        _providers.append(provider)


def links_for(execution_id: int) -> list[Link]:
    """The links of all providers, in the order in which the providers were registered.

    If a provider raises an error, the error is logged and the provider's links are left out. The execution's page can
    still be shown.
    """
    found: list[Link] = []
    for provider in _providers:
        try:
            found.extend(provider(execution_id))
        except Exception:
            log.exception("An artefact provider raised: %r", provider, extra={"execution": execution_id})
    return found
