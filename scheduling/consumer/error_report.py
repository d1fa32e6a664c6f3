"""Describes the exception of a handler. The project's code may raise again while it is described."""

from __future__ import annotations

import asyncio
import os
import traceback
from typing import Any

from scheduling.consumer.terminated import Terminated

TRACEBACK_LIMIT = 64_000
"""The maximum length of a traceback in characters. A longer traceback loses its middle part."""
SHOWN_LIMIT = 10_000
"""The maximum length of the value of `sys.exit` in the error, in characters."""

OUTER_FRAMES = tuple(os.path.dirname(file) + os.sep for file in (__file__, asyncio.__file__))
"""The folders of the code whose frames a traceback begins with, before it comes to the handler."""


def error_fields(error: BaseException | None) -> dict[str, Any]:
    """The class, the message and the traceback of an exception, without the frames above the handler."""
    if error is None:
        return {"error_class": "", "message": "", "traceback": ""}
    kind = type(error)
    name = kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_code.co_filename.startswith(OUTER_FRAMES):
        trace = trace.tb_next  # leave out the frames above the handler
    try:
        message = str(error)
        text = "".join(traceback.format_exception(kind, error, trace))
    except Terminated:
        raise
    except BaseException:  # `__str__` may be the project's code and may raise any exception, even SystemExit
        message, text = "(the error could not be shown)", ""
    if len(text) > TRACEBACK_LIMIT:
        text = text[: TRACEBACK_LIMIT // 2] + "\n... left out ...\n" + text[-TRACEBACK_LIMIT // 2 :]
    return {"error_class": name, "message": message[:TRACEBACK_LIMIT], "traceback": text}


def shown(value: Any) -> str:
    """The `repr` of a value, cut to SHOWN_LIMIT characters."""
    try:
        return repr(value)[:SHOWN_LIMIT]
    except Terminated:
        raise
    except BaseException:
        return f"a {type(value).__name__}"
