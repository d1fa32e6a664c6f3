"""A receiver can tell our messages from others, by an implementation of its own or by ours."""

from __future__ import annotations

from typing import Any

import pytest

from scheduling.notify.signature import SignatureInvalid, sign, verify
from tests.notify.own_hmac import hmac_of

BODY, SECRET, AT = b'{"version": 1}', "cronhook_of_the_tests", 1_765_526_400


@pytest.mark.parametrize("secret", [SECRET, "s" * 200])
def test_the_header_has_the_time_and_the_digest_of_time_and_body(secret: str) -> None:
    digest = hmac_of(secret.encode(), b"1765526400." + BODY)
    assert sign(BODY, secret, AT) == f"t=1765526400,v1={digest}"
    verify(BODY, f"t=1765526400, v1={digest}", secret, now=AT + 1)


def test_while_a_secret_is_replaced_both_are_accepted() -> None:
    verify(BODY, sign(BODY, "the-old-secret-1", AT), [SECRET, "the-old-secret-1"], now=AT)
    old = sign(BODY, "the-old-secret-1", AT).partition("v1=")[2]
    verify(BODY, f"{sign(BODY, SECRET, AT)},v1={old}", "the-old-secret-1", now=AT)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"body": BODY + b" "}, "not signed with this secret"),
        ({"secret": SECRET + "x"}, "not signed with this secret"),
        ({"now": AT + 301}, "within the last 300 s"),
        ({"now": AT - 301}, "within the last 300 s"),
        ({"now": AT + 6, "tolerance": 5}, "within the last 5 s"),
        ({"header": sign(BODY, SECRET, AT).replace("t=1765526400", "t=1765526401")}, "not signed with this secret"),
        ({"header": sign(BODY, SECRET, AT).upper()}, "must look like"),
        *(({"header": header}, "must look like") for header in (
            None, "", "t=1", "v1=ab", "t=1,t=1,v1=ab", "t=x,v1=ab", "t=-1,v1=ab", "t=,v1=", "t=٣,v1=ab", "t=1,v1=ä",
            "t=" + "9" * 30 + ",v1=ab", "t=1,v1=" + "a" * 2_000, "\x00", ",,,=,", "t=1,v1=\ud800",
        )),
        ({"header": "t=999999999999999999,v1=ab"}, "not signed with this secret"),
    ],
)  # fmt: skip
def test_what_must_not_be_trusted_is_refused(change: dict[str, Any], says: str) -> None:
    values: dict[str, Any] = {
        "body": BODY, "header": sign(BODY, SECRET, AT), "secret": SECRET, "now": AT + 299, **change
    }  # fmt: skip
    with pytest.raises(SignatureInvalid, match=says):
        verify(**values)


@pytest.mark.parametrize("secret", ["", [], ["", SECRET]])
def test_an_empty_secret_verifies_nothing(secret: Any) -> None:
    with pytest.raises(ValueError, match=r"The secret is empty\."):
        verify(BODY, sign(BODY, SECRET, AT), secret, now=AT)
