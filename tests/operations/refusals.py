"""Calls an operation that is refused."""

from __future__ import annotations

from typing import Any

import pytest

from scheduling.operations.refused import Refused


def refused(call: Any, *arguments: Any, **options: Any) -> Refused:
    """Return the refusal with which a call ends."""
    with pytest.raises(Refused) as found:
        call(*arguments, **options)
    return found.value
