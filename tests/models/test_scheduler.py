"""The tests check the validation of a schedule, the plan that `save` makes, and changes that were made with SQL."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.core.exceptions import ValidationError
from django.db import IntegrityError, connection, transaction
from django.utils import timezone as clock

from scheduling.core.retry import RetryPolicy
from scheduling.models import Reminder, Scheduler, Worker
from scheduling.producer.sweeps import plan_stale
from tests.factories import SchedulerFactory, due

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    ("columns", "field", "words"),
    [
        ({"schedule": "61 * * * *"}, "schedule", "0-59"),
        ({"schedule": "0 0 31 2 *"}, "schedule", "never"),
        ({"schedule": "* * * * *", "timezone": "Europe/Madird"}, "timezone", "Europe/Madrid"),
        ({"date_time": clock.now() - timedelta(minutes=1)}, "date_time", "passed"),
        ({"schedule": "* * * * *", "max_retries": 20}, "max_retries", "0 to 19"),
        ({"schedule": "* * * * *", "retry_delay_ms": 10}, "retry_delay_ms", "from 1s to 1h"),
        ({"schedule": "* * * * *", "retry_multiplier": 11.0}, "retry_multiplier", "1.0 to 10.0"),
        ({"schedule": "* * * * *", "retry_delay_ms": 5000, "retry_max_delay_ms": 4000}, "retry_max_delay_ms", "least"),
        ({"schedule": "* * * * *", "params": [1]}, "params", "JSON object"),
    ],
)
def test_an_invalid_value_has_an_error_at_its_field_and_is_not_saved(
    columns: dict[str, Any], field: str, words: str
) -> None:
    with pytest.raises(ValidationError) as caught:
        SchedulerFactory(**{"schedule": "", **columns})
    assert words in " ".join(caught.value.message_dict[field])
    assert not Scheduler.objects.filter(worker__name="tests.noop").exists()


def test_policy_out_of_bounds_has_the_original_error_code() -> None:
    with pytest.raises(ValidationError) as caught:
        SchedulerFactory(rare=True, max_retries=20)
    assert caught.value.error_dict["max_retries"][0].code == "SCHEDULE_RETRY_POLICY_INVALID"


def test_invalid_params_are_not_saved() -> None:
    with pytest.raises(ValidationError) as caught:
        SchedulerFactory(rare=True, handler="tests.typed", params={"since_days": 91})
    assert "since_days" in str(caught.value)


@pytest.mark.parametrize(
    "change",
    [
        {"worker": None},
        {"schedule": ""},
        {"date_time": clock.now() + timedelta(days=1)},
        {"reminder": True},
    ],
)
def test_database_constraints_require_one_target_and_one_time(change: dict[str, Any]) -> None:
    row = SchedulerFactory(rare=True)
    if change.get("reminder"):
        change = {"reminder": Reminder.objects.create(name="r", subject="s", recipients="a@example.com")}
    with pytest.raises(IntegrityError), transaction.atomic():
        Scheduler.objects.filter(pk=row.pk).update(**change)


def test_saving_plans_the_next_run() -> None:
    row = SchedulerFactory(schedule="*/5 * * * *")
    assert row.next_run_at is not None
    assert 0 < (row.next_run_at - clock.now()).total_seconds() <= 300
    row.status = False
    row.save()
    row.refresh_from_db()
    assert (row.next_run_at, row.plan_state) == (None, 0)


def test_an_edit_of_another_field_keeps_the_due_instant() -> None:
    row = SchedulerFactory(schedule="* * * * *")
    instant = clock.now().replace(second=0, microsecond=0)
    form = Scheduler.objects.get(pk=row.pk)  # an operator opens the form before the schedule is due
    due(row, instant)
    form.description = "renamed"
    form.save()
    row.refresh_from_db()
    assert (row.next_run_at, row.description) == (instant, "renamed")


def test_an_edit_of_the_expression_keeps_the_due_instant() -> None:
    row = due(SchedulerFactory(schedule="* * * * *"), clock.now().replace(second=0, microsecond=0))
    instant = row.next_run_at
    row.schedule = "0 5 * * *"
    row.save()
    row.refresh_from_db()
    assert row.next_run_at == instant  # a producer first claims this instant, and then the new expression applies


def test_a_change_by_plain_sql_is_planned() -> None:
    row = SchedulerFactory(schedule="0 0 1 1 *")
    with connection.cursor() as cursor:
        cursor.execute(
            f"UPDATE {connection.ops.quote_name('scheduling_scheduler')} SET schedule = %s WHERE id = %s",
            ["*/10 * * * *", row.pk],
        )
    row.refresh_from_db()
    assert row.plan_state == 1
    assert plan_stale(clock.now()) >= 1
    row.refresh_from_db()
    assert row.plan_state == 0
    assert row.next_run_at is not None
    assert row.next_run_at - clock.now() <= timedelta(minutes=10)


def test_an_invalid_expression_by_plain_sql_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    row = SchedulerFactory(rare=True)
    Scheduler.objects.filter(pk=row.pk).update(schedule="every monday")
    plan_stale(clock.now())
    plan_stale(clock.now())
    row.refresh_from_db()
    assert row.plan_error
    assert row.next_run_at is None
    assert sum("set aside" in record.getMessage() for record in caplog.records) == 1
    Scheduler.objects.filter(pk=row.pk).update(schedule="0 8 * * *")
    plan_stale(clock.now())
    row.refresh_from_db()
    assert row.plan_error == ""
    assert row.next_run_at is not None


def test_a_row_inserted_by_plain_sql_is_planned() -> None:
    worker = Worker.objects.get(name="tests.noop")
    quote = connection.ops.quote_name
    with connection.cursor() as cursor:
        cursor.execute(
            f"INSERT INTO {quote('scheduling_scheduler')} "
            f"(schedule, worker_id, params, created_at, updated_at) VALUES (%s, %s, %s, %s, %s)",
            ["0 8 * * *", worker.pk, "{}", *[connection.ops.adapt_datetimefield_value(clock.now())] * 2],
        )
    plan_stale(clock.now())
    assert Scheduler.objects.get(worker=worker).next_run_at is not None


def test_the_policy_of_the_row_replaces_inherited_values() -> None:
    base = RetryPolicy(max_retries=1, delay_ms=2000)
    assert Scheduler().retry_policy(base) is base
    own = Scheduler(max_retries=5, retry_multiplier=3.0).retry_policy(base)
    assert (own.max_retries, own.delay_ms, own.multiplier) == (5, 2000, 3.0)


@pytest.mark.parametrize(("seconds", "active", "overdue"), [(59, True, False), (61, True, True), (61, False, False)])
def test_a_schedule_is_overdue_after_a_minute_while_active(seconds: int, active: bool, overdue: bool) -> None:
    now = clock.now()
    row = due(SchedulerFactory(schedule="* * * * *"), now - timedelta(seconds=seconds))
    Scheduler.objects.filter(pk=row.pk).update(status=active)
    row.refresh_from_db()
    assert row.is_overdue(now) is overdue
    assert list(Scheduler.objects.overdue(now)) == ([row] if overdue else [])


def test_the_longest_overdue_comes_first() -> None:
    now = clock.now()
    late, later = (due(SchedulerFactory(schedule="* * * * *"), now - timedelta(minutes=minutes)) for minutes in (2, 3))
    assert list(Scheduler.objects.overdue(now)) == [later, late]


def test_a_language_outside_of_the_settings_is_refused(settings: Any) -> None:
    settings.LANGUAGES = [("en", "English"), ("de", "German")]
    row = SchedulerFactory(language="de")
    with pytest.raises(ValidationError) as refused:
        SchedulerFactory(language="tlh")
    assert refused.value.message_dict == {"language": ["The setting LANGUAGES has no language 'tlh'. It has: de, en."]}
    settings.LANGUAGES = [("en", "English")]
    loaded = Scheduler.objects.get(pk=row.pk)
    loaded.status = False
    loaded.save()  # the row keeps a language that the settings have lost, and can still be paused
    loaded.language = "tlh"
    with pytest.raises(ValidationError):
        loaded.save()
    loaded.language = ""
    loaded.save()
