"""How much work a call is: the calls that it makes, of Python and of C. A clock would measure the machine."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any


def steps(call: Callable[..., object], *arguments: Any) -> int:
    """The number of calls within a call; a ValueError ends it like a result does."""
    count = 0

    def heard(_frame: object, event: str, _argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    former = sys.getprofile()
    sys.setprofile(heard)
    try:
        call(*arguments)
    except ValueError:
        pass
    finally:
        sys.setprofile(former)
    return count
