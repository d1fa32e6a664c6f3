"""A run uses the handler's retry policy, or else the policy of the settings. The schedule may replace single values."""

from __future__ import annotations

from dataclasses import fields, replace

from django.test import override_settings

from scheduling.core.retry import DELAY_MS, MAX_RETRIES, RetryPolicy
from scheduling.handlers import Handler
from scheduling.handlers.retry_policy import inherited_policy, retry_policy
from scheduling.models import Scheduler
from scheduling.models.own_retry_policy import RETRY_COLUMNS

CODE_ONLY = {"backoff", "problem"}
"""What only code can say: a row of the database holds no function."""

OWN = RetryPolicy(max_retries=7, delay_ms=2_000)
PLAIN = Handler("worker", "tests.plain", lambda _params, _run: None)
WITH_POLICY = replace(PLAIN, retry=OWN)


@override_settings(CRON_MAX_RETRIES=2)
def test_order_of_schedule_handler_and_settings() -> None:
    assert inherited_policy(None) == inherited_policy(PLAIN) == RetryPolicy(max_retries=2)
    assert (
        inherited_policy(WITH_POLICY)
        == retry_policy(WITH_POLICY, None)
        == retry_policy(WITH_POLICY, Scheduler())
        == OWN
    )
    assert retry_policy(WITH_POLICY, Scheduler(max_retries=0)) == replace(OWN, max_retries=0)
    assert retry_policy(None, Scheduler(retry_jitter=True)) == RetryPolicy(max_retries=2, jitter=True)


def test_runs_ignore_values_out_of_bounds_and_errors_name_the_column() -> None:
    for column, value in [("max_retries", MAX_RETRIES[1] + 1), ("retry_delay_ms", DELAY_MS[0] - 1)]:
        row = Scheduler(**{column: value})
        assert retry_policy(WITH_POLICY, row) == OWN
        assert [*row.retry_errors(OWN)] == [column]
    assert Scheduler(max_retries=1).retry_errors(OWN) == {}


def test_every_attribute_of_a_policy_has_a_column() -> None:
    own = [attribute.name for attribute in fields(RetryPolicy) if attribute.name not in CODE_ONLY]
    assert [*RETRY_COLUMNS.values()] == own
    assert all(Scheduler._meta.get_field(column).null for column in RETRY_COLUMNS)
