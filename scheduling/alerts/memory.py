"""What the process that evaluates remembers from one evaluation to the next, so that it need not be read again."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, TypeVar

Value = TypeVar("Value")

MOST = 20_000
"""So many values are remembered. With more, the process forgets all of them."""


@dataclass
class Memory:
    """Values with the time at which they were found. All of them can be found again."""

    _values: dict[Hashable, tuple[datetime, Any]] = field(default_factory=dict)

    def clear(self) -> None:
        """Forget all values."""
        self._values.clear()

    def known(self, key: Hashable, now: datetime, age: timedelta) -> Any:
        """The value that was found within the last `age`; None if there is none."""
        found = self._values.get(key)
        return found[1] if found is not None and now - age < found[0] <= now else None

    def keep(self, key: Hashable, now: datetime, value: Any) -> None:
        """Remember a value."""
        if len(self._values) >= MOST:
            self._values.clear()
        self._values[key] = now, value

    def get(self, key: Hashable, now: datetime, age: timedelta, find: Callable[[], Value]) -> Value:
        """The value that was found within the last `age`, or else the one that is found now. It is not None."""
        value: Value | None = self.known(key, now, age)
        if value is None:
            value = find()
            self.keep(key, now, value)
        return value


memory = Memory()
"""What this process remembers. One thread of it evaluates."""
