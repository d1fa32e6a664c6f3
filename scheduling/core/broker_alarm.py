"""An alarm with which a broker refuses messages, although it can be reached."""

from __future__ import annotations

from typing import NamedTuple


class Alarm(NamedTuple):
    """An alarm of the broker, such as that of its disk.

    Args:
        why: a sentence.
        seconds: for so long it has lasted.
    """

    why: str
    seconds: float
