"""Listeners for tests. Each notes in a file of its event that it was called."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from django.contrib.auth.models import Group
from pydantic import BaseModel

from scheduling.handlers import NonRetryableError, RetryableError, Run, listener
from tests.apps.sample.surviving import effect, note


class InvoiceParams(BaseModel):
    """The payload of an invoice that is due."""

    invoice_id: int


class DirectoryParams(BaseModel):
    """The directory of the files that the listeners write, and for how long each works."""

    directory: str
    seconds: float = 0.05


@listener("tests.invoice_due", params=InvoiceParams, name="remind")
def remind(params: InvoiceParams, run: Run) -> None:
    """Say what came."""
    assert run.event is not None
    Group.objects.create(name=f"remind {params.invoice_id} {run.event.metadata.get('customer')} {run.attempt}")


@listener("tests.failing", name="first")
@listener("tests.failing", name="third")
def called(payload: Mapping[str, Any], run: Run) -> None:
    """Count the calls."""
    Group.objects.create(name=f"called {payload.get('word')} {Group.objects.count()}")


@listener("tests.failing", name="second")
def fails(payload: Mapping[str, Any], run: Run) -> None:
    """Fail as the payload says, until the retry whose number it names."""
    if run.retry_count < payload.get("until", 100):
        kinds = {"final": NonRetryableError, "later": lambda text: RetryableError(text, retry_after=7)}
        raise kinds.get(str(payload.get("how")), ValueError)("no paper")


@listener("tests.surviving", params=DirectoryParams, name="mail")
def mail(params: DirectoryParams, run: Run) -> None:
    """Has an effect outside of the database."""
    outside(params, run, "mail")


@listener("tests.surviving", params=DirectoryParams, name="push")
def push(params: DirectoryParams, run: Run) -> None:
    """Has another effect outside of the database."""
    outside(params, run, "push")


def outside(params: DirectoryParams, run: Run, word: str) -> None:
    """Note the word between two waits, in which the run may be killed."""
    note(params, run, "start")
    time.sleep(params.seconds / 2)
    note(params, run, word)
    time.sleep(params.seconds / 2)


@listener("tests.surviving", params=DirectoryParams, name="book", atomic=True)
def inside(params: DirectoryParams, run: Run) -> None:
    """Has an effect in the database, once."""
    note(params, run, "start")
    time.sleep(params.seconds / 2)
    effect(run, "book")
    time.sleep(params.seconds / 2)
