"""Names that no queue can have."""

from __future__ import annotations

from typing import Any

from scheduling.core.queues import NAME_LENGTH

HOSTILE: list[Any] = [
    "", " ", "a b", "Reports", "é", "a" * (NAME_LENGTH + 1), "-a", "_a", "a.b", "main.high", "a,b", "a/b", "a\n",
    "a\x00", "\ud800", "amq.direct", "amqp", "cron_scheduler_failed", "cron_scheduler", "default", "standalone",
    "#", "*", None, 7, b"reports", ["reports"],
]  # fmt: skip
