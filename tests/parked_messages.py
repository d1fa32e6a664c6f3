"""Messages in the failed queue that another program has parked."""

from __future__ import annotations

import json

from scheduling.models import Worker


def original_body(**fields: object) -> bytes:
    """Return the bytes of a parked message of the original contract. Such a message contains no execution id."""
    worker = Worker.objects.get(name="tests.noop")
    task = {"type": "worker", "id": worker.pk, "scheduler_id": 16, "params_scheduler": "{}"}
    end = {"failed_at": "2025-12-12T12:03:39.002Z", "failed_reason": "Connection timeout", "retry_count": 3}
    return json.dumps({**task, **end, **fields}).encode()
