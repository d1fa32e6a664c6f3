"""The addresses of an execution's pages, and hostile text that every page must escape."""

from __future__ import annotations

import re
from html import unescape
from typing import Any

from django.urls import reverse

from scheduling.models import Scheduler, SchedulerExecution

HOSTILE = "<script>alert(1)</script>\x1b[31m\u202e\"'><img src=x onerror=alert(1)>"


def address(model: str, page: str = "changelist", *key: Any) -> str:
    """Return the URL of a page of a model."""
    return reverse(f"admin:scheduling_{model}_{page}", args=key)


def page_of(row: SchedulerExecution, name: str = "change") -> str:
    """Return the address of one of the execution's pages."""
    return reverse(f"admin:scheduling_schedulerexecution_{name}", args=[row.pk])


def text_in(response: Any) -> str:
    """Return the text of an answer without markup."""
    assert response.status_code == 200
    body = response.content.decode().split('id="content-main"')[1].split("<footer")[0]
    return re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]+>", " ", body)))


def run_address(row: Scheduler) -> str:
    """Return the URL of the page "Run now"."""
    return reverse("admin:scheduling_scheduler_run", args=[row.pk])
