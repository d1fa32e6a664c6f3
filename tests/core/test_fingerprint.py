"""Two errors get the same fingerprint if the errors differ only in details that change with each run."""

from __future__ import annotations

import pytest

from scheduling.core.fingerprint import fingerprint, normalise, own_frame

TRACE = """Traceback (most recent call last):
  File "/srv/app/jobs/sync.py", line {line}, in sync
    call()
  File "/srv/venv/lib/python3.11/site-packages/requests/api.py", line 59, in request
    raise ConnectionError
"""


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("no route to 10.1.2.3", "no route to 10.9.9.9"),
        ("user 17 is gone", "user 123456 is gone"),
        ("no file '/tmp/a b'", "no file '/tmp/c'"),
        ("id 7f3b2c1d-0000-4000-8000-1234567890ab", "id 00000000-0000-4000-8000-000000000000"),
        ("at 2026-01-01T00:00:00Z", "at 2027-12-31 23:59:59.123"),
        ("<Thing object at 0x7f00aa>", "<Thing object at 0x7faabb>"),
        ("mail to ann@example.com bounced", "mail to bob.b@example.org bounced"),
        ("first line\nsecond A", "first line\nsecond B"),
    ],
)
def test_details_of_a_run_do_not_change_the_fingerprint(one: str, other: str) -> None:
    assert normalise(one) == normalise(other)
    assert fingerprint("E", one, TRACE.format(line=4)) == fingerprint("E", other, TRACE.format(line=90))


@pytest.mark.parametrize(
    ("first", "second"),
    [(("E", "a"), ("F", "a")), (("E", "cannot read"), ("E", "cannot write"))],
)
def test_different_errors_have_different_fingerprints(first: tuple[str, str], second: tuple[str, str]) -> None:
    assert fingerprint(*first) != fingerprint(*second)


def test_frames_of_installed_packages_are_ignored() -> None:
    assert own_frame(TRACE.format(line=1)) == "sync.py:sync"
    assert own_frame("") == ""
