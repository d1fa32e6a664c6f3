"""What the pages of handlers and schedules say about a circuit breaker."""

from __future__ import annotations

from typing import Any

from scheduling.admin.common.viewer import Viewer
from scheduling.core.breaker import BreakerState
from scheduling.core.known_sentences import in_language
from scheduling.execution.breakers import read_circuit
from scheduling.handlers.targets import handler_named


def breaker_context(type_: str, handler: str, viewer: Viewer) -> dict[str, Any]:
    """The template context of a page about a handler: for which breaker its runs wait. Empty if they do not wait."""
    code = handler_named(type_, handler)
    if code is None or code.breaker is None:
        return {}
    circuit = read_circuit(type_, handler)
    if circuit.state is BreakerState.CLOSED:
        return {}
    sentence = in_language(circuit.sentence(f"the {type_} {handler!r}", code.breaker))
    return {"breaker": sentence, "breakers": "" if viewer.visible.is_limited else viewer.list_of("breaker")}
