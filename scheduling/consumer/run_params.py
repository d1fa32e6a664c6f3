"""Makes an instance of the params model from the stored params of a run."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel

from scheduling.core.text import visible_text
from scheduling.handlers import Handler
from scheduling.handlers.params import validate_for_run

log = logging.getLogger("scheduling.run")


def checked_params(handler: Handler, params: Mapping[str, Any]) -> BaseModel:
    """The params as an instance of the params model. What the handler does not know is left out, and logged.

    Raises:
        ParamsInvalid: the other params do not fit.
    """
    found, left_out = validate_for_run(handler, params)
    if left_out:
        names = visible_text(", ".join(left_out), 500)
        log.warning("Parameters that the handler does not know are left out: %s", names)
    return found
