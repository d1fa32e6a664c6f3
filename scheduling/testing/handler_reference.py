"""Finds the handler that a test means: by its name, or by the function, class or task itself."""

from __future__ import annotations

from typing import Any

from scheduling.handlers import Handler, UnknownHandler, find, handlers
from scheduling.tasks.framework import FRAMEWORK


def meant(handler: Any) -> Handler:
    """The handler of a name, of a function with `@worker`, of a class with `@report`, or of a task of Django.

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
    if FRAMEWORK is not None and isinstance(handler, FRAMEWORK.Task):
        return find("worker", handler.module_path)
    found = [known for known in handlers() if handler in (known.call, getattr(known.call, "controller", None))]
    if not found:
        raise UnknownHandler(f"{handler!r} is not registered: it has no @worker and no @report.")
    if len(found) > 1:
        names = ", ".join(repr(known.name) for known in found)
        raise ValueError(f"{handler!r} is registered as {names}: give one of these names.")
    return found[0]
