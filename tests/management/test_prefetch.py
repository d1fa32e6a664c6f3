"""The option --prefetch of `run_worker`."""

from __future__ import annotations

import pytest
from django.core.management import CommandError

from scheduling.management.prefetch import MOST, prefetch_of

RABBIT = "amqp://guest:guest@localhost:5672/"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", {"main": 2, "reports": 2}),
        ("20", {"main": 20, "reports": 20}),
        (" reports = 50", None),
        ("reports=50", {"main": 2, "reports": 50}),
        ("reports=50, main=3", {"main": 3, "reports": 50}),
        (str(MOST), {"main": MOST, "reports": MOST}),
    ],
)
def test_each_queue_has_its_number(text: str, expected: dict[str, int] | None) -> None:
    if expected is None:
        with pytest.raises(CommandError):
            prefetch_of(text, ["main", "reports"], 2, RABBIT)
    else:
        assert prefetch_of(text, ["main", "reports"], 2, RABBIT) == expected


@pytest.mark.parametrize(
    "text",
    ["1", "0", "-3", "2.5", "many", "²", "٣", "1" * 5000, str(MOST + 1), "main=", "mail=5", "5,6", "main=5,,", "="],
)
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(CommandError, match="--prefetch"):
        prefetch_of(text, ["main", "reports"], 2, RABBIT)


def test_the_embedded_transport_fetches_nothing_ahead() -> None:
    assert prefetch_of("", ["main"], 1, "database://") == {"main": 1}
    with pytest.raises(CommandError, match="is for RabbitMQ"):
        prefetch_of("20", ["main"], 1, "database://")
