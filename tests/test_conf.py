"""The tests check the defaults and limits of settings. The error message for a wrong value names the setting."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from django.core.checks import run_checks
from django.test import override_settings

from scheduling.conf import get_conf, log_options, problems
from scheduling.core.retention import RetentionPolicy
from scheduling.core.retry import RetryPolicy
from scheduling.core.setting_values import ConfError
from scheduling.project_checks import check_names


def test_defaults() -> None:
    conf = get_conf()
    assert conf.retry == RetryPolicy(3, 30_000, 2.0, 3_600_000, False)
    assert (conf.broker_url, conf.timezone, conf.catch_up_seconds, conf.lease_seconds) == (
        "database://",
        "UTC",
        86_400,
        15,
    )


def test_original_names_of_settings_are_valid() -> None:
    with override_settings(CRON_MAX_RETRIES="5", CRON_RETRY_DELAY_MS="10000", CRON_RETRY_DELAY_MULTIPLIER="1.5"):
        assert get_conf().retry == RetryPolicy(5, 10_000, 1.5)


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("CRON_MAX_RETRIES", "-1"),
        ("CRON_MAX_RETRIES", "three"),
        ("CRON_RETRY_DELAY_MS", "0"),
        ("CRON_RETRY_DELAY_MULTIPLIER", "nan"),
        ("CRON_RETRY_MAX_DELAY_MS", "1000"),
        ("CRON_RETRY_JITTER", "maybe"),
        ("CRON_TIMEZONE", "Europe/Atlantis"),
        ("CRON_CATCH_UP_SECONDS", "-5"),
        ("CRON_LEASE_SECONDS", "1"),
        ("CRON_OUTPUT_MAX_BYTES", "1"),
        ("BROKER_URL", "ftp://nowhere"),
        ("CRON_QUEUE_TYPE", "stream"),
        ("CRON_SECONDS", "maybe"),
        ("CRON_RELEASE", "r" * 65),
        ("CRON_RELEASE", "r\n42"),
    ],
)
def test_the_error_message_for_an_invalid_value_names_the_setting(setting: str, value: Any) -> None:
    with override_settings(**{setting: value}):
        with pytest.raises(ConfError) as caught:
            get_conf()
        named = setting if setting != "CRON_RETRY_MAX_DELAY_MS" else "CRON_RETRY_"
        assert named in str(caught.value)
        assert [error.id for error in run_checks(tags=["scheduling"])] == ["scheduling.E001"]


def test_schedules_without_a_zone_use_the_projects_time_zone() -> None:
    """With TIME_ZONE="Europe/Berlin" and no CRON_TIMEZONE, a schedule without a zone uses the local time of Berlin."""
    with override_settings(TIME_ZONE="Europe/Berlin"):
        assert get_conf().timezone == "Europe/Berlin"
        with override_settings(CRON_TIMEZONE="Asia/Tokyo"):
            assert get_conf().timezone == "Asia/Tokyo"


def test_all_invalid_values_are_named_together() -> None:
    with override_settings(CRON_MAX_RETRIES="x", CRON_TIMEZONE="y"):
        assert len(problems()) == 2


@pytest.mark.parametrize("url", ["amqp://ann:hunter2@a,,b/", "amqp://ann:hunter2@a/v,amqp://ann:hunter2@b/w"])
def test_a_wrong_list_of_brokers_is_a_system_check(url: str) -> None:
    with override_settings(BROKER_URL=url):
        (error,) = run_checks(tags=["scheduling"])
    assert error.id == "scheduling.E006"
    assert "BROKER_URL" in error.msg
    assert "hunter2" not in error.msg


def test_the_type_of_the_queues() -> None:
    assert get_conf().queue_type == "classic"
    with override_settings(CRON_QUEUE_TYPE=" Quorum "):
        assert get_conf().queue_type == "quorum"


def test_a_password_in_the_broker_url_is_never_repeated() -> None:
    with override_settings(BROKER_URL="redis://user:hunter2@host"):
        assert "hunter2" not in " ".join(problems())


@pytest.mark.parametrize(
    ("settings", "id_"),
    [
        ({"LOG_FORMAT": "xml"}, "scheduling.E002"),
        ({"LOG_LEVEL": "LOUD"}, "scheduling.E002"),
        ({"SECRET_KEY": ""}, "scheduling.E003"),
        ({"CRON_COMMANDS": "clearsessions,format_disk"}, "scheduling.E004"),
    ],
)
def test_checks_have_ids(settings: dict[str, Any], id_: str) -> None:
    with override_settings(**settings):
        assert id_ in [message.id for message in run_checks(tags=["scheduling"])]


@pytest.mark.parametrize("name", ["SUCCESS_DAYS", "FAILED_DAYS", "OUTPUT_DAYS", "KEEP", "ONE_TIME_DAYS"])
@pytest.mark.parametrize("value", ["0", "-1", "ten", "1.5", "9" * 5000, 10**30, "1_0 ", [], True])
def test_a_retention_setting_out_of_bounds_is_refused(name: str, value: Any) -> None:
    with override_settings(**{f"CRON_RETENTION_{name}": value}):
        if value == "1_0 ":  # Python reads this text as ten
            assert get_conf()
            return
        with pytest.raises(ConfError, match=f"CRON_RETENTION_{name} is "):
            get_conf()


@pytest.mark.parametrize("value", [None, "", "  "])
def test_an_empty_retention_setting_is_not_set(value: Any) -> None:
    names = ("SUCCESS_DAYS", "FAILED_DAYS", "OUTPUT_DAYS", "KEEP", "ONE_TIME_DAYS")
    with override_settings(**{f"CRON_RETENTION_{name}": value for name in names}):
        assert get_conf().retention() == RetentionPolicy(30, 30, None, None, None)
        assert get_conf().retention_one_time_days is None


def test_successes_are_kept_as_other_executions_unless_they_have_an_age_of_their_own() -> None:
    with override_settings(CRON_RETENTION_DAYS="90"):
        assert get_conf().retention() == RetentionPolicy(90, 90)
        assert get_conf().retention(7) == RetentionPolicy(7, 7)
        with override_settings(CRON_RETENTION_SUCCESS_DAYS="3", CRON_RETENTION_FAILED_DAYS=365):
            assert get_conf().retention(7) == RetentionPolicy(3, 7, 365)


OWN_COMMANDS = ("clearsessions", "cleanup_executions", "check", "showmigrations")


@pytest.mark.parametrize(
    ("value", "commands"),
    [
        ("", OWN_COMMANDS),
        ("flush", (*OWN_COMMANDS, "flush")),
        (["migrate", "check", "flush"], (*OWN_COMMANDS, "migrate", "flush")),
        ("-check, flush", ("clearsessions", "cleanup_executions", "showmigrations", "flush")),
        ("-*,flush", ("flush",)),
        ("-*,check", ("check",)),
    ],
)
def test_commands_add_to_our_own(value: Any, commands: tuple[str, ...]) -> None:
    with override_settings(CRON_COMMANDS=value):
        assert get_conf().commands == commands


def test_only_our_own_commands_can_be_taken_away() -> None:
    with override_settings(CRON_COMMANDS="-flush"), pytest.raises(ConfError, match="-flush; only these can be taken"):
        get_conf()


@pytest.mark.parametrize(
    ("names", "level"),
    [
        ({"CRON_LOG_LEVEL": logging.DEBUG}, "DEBUG"),
        ({"CRON_LOG_LEVEL": "30"}, "WARNING"),
        ({"CRON_LOG_LEVEL": "error", "LOG_LEVEL": "DEBUG"}, "ERROR"),
        ({"LOG_LEVEL": "debug"}, "DEBUG"),
        ({"LOG_LEVEL": "debug", "CRON_SHORT_NAMES": False}, "INFO"),
    ],
)
def test_the_name_with_the_prefix_comes_first(names: dict[str, Any], level: str) -> None:
    with override_settings(**names):
        assert log_options() == ("text", level)


@pytest.mark.parametrize("level", ["LOUD", 17, True, None, "-10", ""])
def test_an_unknown_level_is_named(level: Any) -> None:
    with override_settings(CRON_LOG_LEVEL=level), pytest.raises(ValueError, match="CRON_LOG_LEVEL is"):
        log_options()


def test_a_short_name_counts_in_the_site_only() -> None:
    with override_settings(BROKER_URL="amqp://a/"):
        assert get_conf().broker_url == "amqp://a/"
    with override_settings(BROKER_URL="amqp://a/", CRON_BROKER_URL="amqp://b/"):
        assert get_conf().broker_url == "amqp://b/"
    with override_settings(BROKER_URL="redis://a/", CRON_SHORT_NAMES=False):
        assert get_conf().broker_url == "database://"
    with override_settings(BROKER_URL="redis://a/"):
        assert problems() == ["BROKER_URL must begin with database://, amqp:// or amqps://."]


def test_names_of_the_environment_are_no_unknown_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("CRON_CHAT_TEAM", "CRON_EXECUTION_ID", "CRON_CHILD", "CRON_AS", "CRON_DEMO", "CRON_PING_NIGHTLY"):
        monkeypatch.setenv(name, "1")
    assert check_names() == []
    monkeypatch.setenv("CRON_LEASE_SECOND", "5")
    (found,) = check_names()
    assert (found.id, found.hint) == ("scheduling.W006", "Did you mean CRON_LEASE_SECONDS?")
