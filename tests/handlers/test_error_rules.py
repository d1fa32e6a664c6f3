"""A handler says which of its errors are worth a retry."""

from __future__ import annotations

from typing import Any

import pytest

from scheduling.handlers import RegistryError, worker
from scheduling.handlers.error_rules import ErrorRules


class WithCode(Exception):
    """An error that carries a code, as many libraries raise."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


def by_code(error: BaseException) -> bool | None:
    return {"ECONNREFUSED": True, "AUTH_INVALID": False}.get(getattr(error, "code", ""))


@pytest.mark.parametrize(
    ("rules", "error", "retried"),
    [
        ({}, ValueError(), True),
        ({"give_up_on": ValueError}, ValueError(), False),
        ({"give_up_on": ValueError}, UnicodeDecodeError("utf-8", b"", 0, 0, ""), False),
        ({"give_up_on": ValueError}, KeyError(), True),
        ({"retry_on": (ConnectionError, TimeoutError)}, ConnectionResetError(), True),
        ({"retry_on": (ConnectionError, TimeoutError)}, KeyError(), False),
        ({"retry_on": OSError, "give_up_on": PermissionError}, PermissionError(), False),
        ({"retry_on": OSError, "give_up_on": PermissionError}, FileNotFoundError(), True),
        ({"retry_if": by_code}, WithCode("ECONNREFUSED"), True),
        ({"retry_if": by_code}, WithCode("AUTH_INVALID"), False),
        ({"retry_if": by_code, "give_up_on": WithCode}, WithCode("ECONNREFUSED"), True),
        ({"retry_if": by_code, "give_up_on": WithCode}, WithCode("OTHER"), False),
        ({"retry_if": lambda error: error.nothing, "give_up_on": KeyError}, KeyError(), False),
        ({"retry_if": lambda error: error.nothing}, KeyError(), True),
        ({"retry_if": lambda error: 0}, KeyError(), False),
        ({"retry_on": KeyboardInterrupt}, KeyboardInterrupt(), True),
    ],
)
def test_the_first_rule_that_knows_an_error_decides(rules: dict[str, Any], error: BaseException, retried: bool) -> None:
    assert ErrorRules.of(**rules).may_retry(error) is retried


@pytest.mark.parametrize(
    "rules",
    [
        {"retry_on": "ValueError"},
        {"give_up_on": [ValueError()]},
        {"give_up_on": int},
        {"retry_on": 5},
        {"retry_if": True},
    ],
)
def test_what_is_no_rule_is_refused_with_the_name_of_the_worker(rules: dict[str, Any]) -> None:
    with pytest.raises(RegistryError, match=r"Worker 'tests\.ruled'"):
        worker("tests.ruled", **rules)
