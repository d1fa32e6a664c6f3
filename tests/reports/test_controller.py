"""ReportController refuses rows of a wrong shape. `@report` refuses classes that cannot make a report."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from reports.controller import ReportController, ReportError
from reports.registry import report
from scheduling.handlers import RegistryError, RetryPolicy, find
from tests.reports.support import Numbers, run_of


def one_row(row: Any) -> ReportController:
    """Return a report with the columns `a` and `b` and only this row."""

    class OneRow(ReportController):
        columns = ("a", "b")

        def rows(self, params: Any, run: Any) -> Iterator[Any]:
            yield row

    return OneRow()


def test_rows_come_as_sequences_or_by_name() -> None:
    assert list(Numbers().table(None, run_of())) == [("one", 1), ("two", 2)]


@pytest.mark.parametrize(
    ("row", "sentence"),
    [
        ((1,), "Row 1 of .*OneRow has 1 values, but there are 2 columns: a, b"),
        ([1, 2, 3], "has 3 values"),
        ({"a": 1}, "Row 1 of .*OneRow lacks b"),
        ({"a": 1, "b": 2, "c": 3}, "has 'c', which is no column"),
        ({"a": 1, "c": 3}, "lacks b and has 'c', which is no column"),
        ("ab", "is a str: yield a tuple"),
        (None, "is a NoneType: yield a tuple"),
        ({1, 2}, "is a set: yield a tuple"),
    ],
)
def test_a_row_of_the_wrong_shape_is_an_error(row: Any, sentence: str) -> None:
    with pytest.raises(ReportError, match=sentence):
        list(one_row(row).table(None, run_of()))


def test_a_method_rows_that_does_not_yield_is_an_error() -> None:
    class Forgetful(ReportController):
        columns = ("a",)

        def rows(self, params: Any, run: Any) -> Any:
            return None

    with pytest.raises(ReportError, match="yield each row"):
        list(Forgetful().table(None, run_of()))


def test_rows_are_made_one_at_a_time() -> None:
    made: list[int] = []

    class Endless(ReportController):
        columns = ("n",)

        def rows(self, params: Any, run: Any) -> Iterator[Any]:
            while True:
                made.append(len(made))
                yield (len(made),)

    table = Endless().table(None, run_of())
    assert [next(table), next(table)] == [(1,), (2,)]
    assert len(made) == 2


@pytest.mark.usefixtures("own_registry")
def test_a_registered_report_runs_in_a_new_process() -> None:
    report("tests.numbers", title="Numbers", time_limit=5)(Numbers)
    handler = find("report", "tests.numbers")
    assert (handler.fresh, handler.title, handler.time_limit) == (True, "Numbers", 5)
    assert handler.description == "Two columns and two rows."


@pytest.mark.usefixtures("own_registry")
def test_a_report_may_say_that_there_is_nothing_to_report() -> None:
    def has_rows(params: object, run: object) -> bool:
        return False

    report("tests.numbers_if_any", when=has_rows)(Numbers)
    assert find("report", "tests.numbers_if_any").when is has_rows


@pytest.mark.usefixtures("own_registry")
def test_a_report_has_the_options_of_a_worker() -> None:
    policy = RetryPolicy(max_retries=2, backoff=[1, 2])
    report(
        "tests.numbers_of_a_shop", retry=policy, soft_time_limit=5, memory_limit=500, leaves_processes=True,
        give_up_on=KeyError, retry_if=lambda error: True if str(error) == "busy" else None,
    )(Numbers)  # fmt: skip
    handler = find("report", "tests.numbers_of_a_shop")
    limits = (handler.soft_time_limit, handler.memory_limit, handler.leaves_processes)
    assert (handler.retry, limits) == (policy, (5, 500, True))
    assert [handler.errors.may_retry(error) for error in (KeyError(), OSError(), ValueError("busy"))] == [
        False, True, True,
    ]  # fmt: skip
    for options in ({"fresh": False}, {"schedule": "0 8 * * *"}):
        with pytest.raises(TypeError, match=r"^report\(\) has no argument"):
            report("tests.numbers_of_a_shop", **options)
    with pytest.raises(RegistryError, match=r"^Report 'tests\.numbers_of_a_shop': give_up_on names classes"):
        report("tests.numbers_of_a_shop", give_up_on=5)  # type: ignore[arg-type]
    with pytest.raises(RegistryError, match=r'^@report needs a name: write @report\("Numbers"\) above Numbers\.$'):
        report(Numbers)  # type: ignore[arg-type]


@pytest.mark.usefixtures("own_registry")
def test_two_reports_of_one_name_are_refused() -> None:
    class Other(Numbers):
        pass

    report("tests.numbers")(Numbers)
    report("tests.numbers")(Numbers)  # the same class may be registered twice, because a module can be imported twice
    with pytest.raises(RegistryError, match="Two reports"):
        report("tests.numbers")(Other)


@pytest.mark.parametrize(
    ("attributes", "sentence"),
    [
        ({"columns": ()}, "needs columns"),
        ({"columns": "abc"}, "needs columns"),
        ({"columns": ("a", "")}, "needs columns"),
        ({"columns": ("a", "a")}, "a column twice"),
        ({"formats": ("pdf",)}, "one or more of csv, html, json, jsonl"),
        ({"formats": ("csv", "csv")}, "each once"),
        ({"formats": ()}, "one or more of csv"),
        ({"formats": "csv"}, "one or more of csv"),
        ({"rows": ReportController.rows}, "needs a method rows"),
        ({"rows": lambda self, params: iter(())}, "accept \\(self, params, run\\)"),
        ({"__init__": lambda self, needed: None}, "made without arguments"),
    ],
)
@pytest.mark.usefixtures("own_registry")
def test_a_class_that_cannot_make_a_report_is_refused(attributes: dict[str, Any], sentence: str) -> None:
    with pytest.raises(RegistryError, match=sentence):
        report("tests.unusable")(type("Unusable", (Numbers,), attributes))


@pytest.mark.usefixtures("own_registry")
def test_a_class_that_is_no_controller_is_refused() -> None:
    with pytest.raises(RegistryError, match="subclass of ReportController"):
        report("tests.unusable")(dict)  # type: ignore[type-var]
    with pytest.raises(RegistryError, match="pydantic model class"):
        report("tests.unusable", params=dict)(Numbers)  # type: ignore[arg-type]
