"""Count the Python and C calls that a function makes. The count does not depend on the machine's speed."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any


def steps(call: Callable[..., object], *arguments: Any) -> int:
    """Return the number of calls that `call` makes until it returns or raises ValueError."""
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
