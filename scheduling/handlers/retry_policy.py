"""Decides which retry policy applies. The schedule's own values come first, then the policy of the handler, and then
the policy of the settings.
"""

from __future__ import annotations

from scheduling.conf import get_conf
from scheduling.core.retry import RetryPolicy, RetryPolicyInvalid
from scheduling.handlers.registry import Handler
from scheduling.models import Scheduler


def inherited_policy(handler: Handler | None) -> RetryPolicy:
    """The policy of a schedule that sets no retry values: the handler's policy, else the policy of the settings."""
    return handler.retry if handler is not None and handler.retry is not None else get_conf().retry


def retry_policy(handler: Handler | None, scheduler: Scheduler | None) -> RetryPolicy:
    """The policy of a run.

    If plain SQL has set a retry value of the schedule out of bounds, all retry values of the schedule are ignored.
    """
    inherited = inherited_policy(handler)
    try:
        return inherited if scheduler is None else scheduler.retry_policy(inherited)
    except RetryPolicyInvalid:
        return inherited
