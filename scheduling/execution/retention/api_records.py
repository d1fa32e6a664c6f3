"""Removes the records of the HTTP API: tokens that are over, and answers that are not repeated any longer."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django.db.models import Q, QuerySet

from scheduling.execution.retention.pruned import Pruned
from scheduling.models import AnsweredRequest, ApiToken

ANSWERS_FOR = timedelta(days=1)
"""So long, a repeated request with the same Idempotency-Key gets the first answer again."""

BATCH = 500


def remove_api_records(cutoff: datetime, now: datetime, done: Pruned, *, dry_run: bool, batch: int = BATCH) -> None:
    """Remove the tokens that expired or were revoked before the cutoff, and the answers that are a day old."""
    over = ApiToken.objects.filter(Q(expires_at__lt=cutoff) | Q(revoked_at__lt=cutoff))
    done.tokens = over.count() if dry_run else remove_in_batches(over, batch)
    old = AnsweredRequest.objects.filter(created_at__lt=now - ANSWERS_FOR)
    done.answers = old.count() if dry_run else remove_in_batches(old, batch)


def remove_in_batches(rows: QuerySet[Any], batch: int = BATCH) -> int:
    """Delete the rows in batches, without loading them: an answer may be long. Returns how many there were."""
    removed = 0
    while keys := list(rows.order_by("pk").values_list("pk", flat=True)[:batch]):
        count = rows.model._base_manager.filter(pk__in=keys)._raw_delete(rows.db)
        removed += count
        if not count:
            break  # another pass removes them
    return removed
