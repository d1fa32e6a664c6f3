"""Asks the function `when` of a handler, before an attempt, whether there is anything to do."""

from __future__ import annotations

from typing import Any

from scheduling.core.skip_reasons import not_needed
from scheduling.handlers import Handler, Run


class NotNeeded(Exception):
    """The function `when` says that the run is not needed. The text is the reason for operators."""


def check_needed(handler: Handler, params: Any, run: Run) -> None:
    """Call `when`, if the handler has it.

    Raises:
        NotNeeded: the function has returned False or a sentence.
        TypeError: the function has returned something else than True, False or a sentence.
        Exception: any other exception comes from the function. The attempt fails, as if the handler had raised it.
    """
    if handler.when is None:
        return
    said = handler.when(params, run)
    if said is True:
        return
    if said is not False and not (isinstance(said, str) and said.strip()):
        raise TypeError(f"The function `when` must return True, False or a sentence, not {type(said).__name__}.")
    raise NotNeeded(not_needed(said or ""))
