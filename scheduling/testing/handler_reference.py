"""Finds the handler that a test means: by its name, or by the function or class itself."""

from __future__ import annotations

from typing import Any

from scheduling.handlers import Handler, UnknownHandler, find, handlers


def meant(handler: Any) -> Handler:
    """The handler of a name, of a function with `@worker`, or of a class with `@report`.

    Args:
        handler: a text is the name of a worker.

    Raises:
        UnknownHandler: it is not registered in this process.
        ValueError: the function is registered under several names.
    """
    if isinstance(handler, Handler):
        return handler
    if isinstance(handler, str):
        return find("worker", handler)
    found = [known for known in handlers() if handler in (known.call, getattr(known.call, "controller", None))]
    if not found:
        raise UnknownHandler(f"{handler!r} is not registered: it has no @worker and no @report.")
    if len(found) > 1:
        names = ", ".join(repr(known.name) for known in found)
        raise ValueError(f"{handler!r} is registered as {names}: give one of these names.")
    return found[0]
