"""`run_inline` runs a handler in the process of the test, and tells what a consumer would record."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from scheduling.core.outcome import NonRetryableError
from scheduling.handlers import Run, UnknownHandler, worker
from scheduling.handlers.params import ParamsInvalid
from scheduling.testing import OutputLine, run_inline
from tests.apps.sample import workers


def test_what_a_handler_returns_prints_logs_and_reports_is_told(capfd: pytest.CaptureFixture[str]) -> None:
    assert run_inline("tests.give", {"value": {"rows": [1, None]}}).result == {"rows": [1, None]}
    found = run_inline(workers.talk)
    assert (found.handler, found.outcome, found.error, found.is_retried) == ("tests.talk", "succeeded", None, False)
    assert found.progress == "3/10"
    assert found.lines == (
        OutputLine("OUT", "plain print"),
        OutputLine("OUT", "to stderr"),
        OutputLine("INFO", "logged info"),
        OutputLine("WARN", "logged warning"),
        OutputLine("SUCCESS", "logged success"),
    )
    assert found.output.startswith("plain print\nto stderr\n")
    assert "from a grandchild" in capfd.readouterr().out, "what a program prints is not captured"


def test_an_error_is_told_and_raised_only_if_the_test_asks_for_it() -> None:
    found = run_inline("tests.fail")
    assert (found.outcome, found.error_class, found.is_retried) == ("failed", "RuntimeError", True)
    assert isinstance(found.error, RuntimeError)
    assert isinstance(found.error.__cause__, ConnectionError)
    assert not run_inline("tests.fail", retry_count=2).is_retried, "its policy has two retries"
    assert not run_inline("tests.never_again").is_retried
    assert not run_inline("tests.gives_up").is_retried
    with pytest.raises(NonRetryableError, match="the account is closed"):
        run_inline("tests.never_again", raise_errors=True)


def test_params_are_checked_as_a_consumer_checks_them() -> None:
    found = run_inline("tests.typed", {"since_days": 0})
    assert isinstance(found.error, ParamsInvalid)
    assert (found.outcome, found.is_retried, found.lines) == ("failed", False, ())
    assert run_inline("tests.typed", workers.SyncParams(since_days=7)).output == "since 7\n"
    with pytest.raises(ValueError, match="not JSON"):
        run_inline("tests.typed", {"since_days": {1, 2}})


@pytest.mark.usefixtures("own_handlers")
def test_a_secret_is_masked_as_in_a_consumer() -> None:
    @worker("testing.tell", params=workers.KeepParams)
    def tell(params: workers.KeepParams, run: Run) -> str:
        run.log.info("the token is %s", params.token.get_secret_value())
        return params.token.get_secret_value()

    found = run_inline(tell, {"token": "hunter22"})
    assert (found.output, found.result) == ("the token is ••••••\n", "••••••")


@pytest.mark.parametrize("handler", ["tests.no_such", lambda params, run: None])
def test_an_unknown_handler_is_a_mistake_of_the_test(handler: object) -> None:
    with pytest.raises(UnknownHandler):
        run_inline(handler)


def test_a_report_is_left_to_drain() -> None:
    from tests.apps.sample.reports import Rows

    with pytest.raises(ValueError, match="drain"):
        run_inline(Rows)


def test_a_run_leaves_the_process_as_it_was() -> None:
    streams, environment = (sys.stdout, sys.stderr), dict(os.environ)
    assert run_inline("tests.exit").error_message == "The handler exited with 3."
    assert run_inline("tests.return", {"name": "no stdout"}).outcome == "succeeded"
    run_inline("tests.return", {"name": "an error that exits when shown"})
    assert (sys.stdout, sys.stderr) == streams
    assert dict(os.environ) == environment
    assert "CRON_EXECUTION_ID" not in os.environ


def test_every_way_to_end_is_an_outcome() -> None:
    from tests.apps.sample.returns import RETURNS

    for name in RETURNS:
        assert run_inline("tests.return", {"name": name}).outcome in ("succeeded", "failed"), name


def test_pytest_finds_the_fixtures() -> None:
    import tomllib

    from scheduling import pytest_plugin

    pyproject = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())
    assert pyproject["project"]["entry-points"]["pytest11"] == {"cronsite": pytest_plugin.__name__}
