"""The options --only and --except of run_worker."""

from __future__ import annotations

import pytest
from django.core.management.base import CommandError

from scheduling.handlers import registry
from scheduling.handlers.registry import worker
from scheduling.management.chosen_handlers import MAX_PATTERNS, chosen_handlers

EMBEDDED, RABBITMQ = "database://", "amqp://cron@broker/"


@pytest.fixture(autouse=True)
def _two_queues(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_handlers", {})
    for name, queue in (("mail.send", "mail"), ("mail.slow", "mail"), ("sync", ""), ("reports", "reports")):
        worker(name, queue=queue)(lambda params, run: None)


@pytest.mark.parametrize("url", [EMBEDDED, RABBITMQ])
@pytest.mark.parametrize(
    ("only", "without", "queues", "names"),
    [
        ("", "", ["main"], {"mail.send", "mail.slow", "sync", "reports"}),
        ("mail.*", "", ["mail"], {"mail.send", "mail.slow"}),
        (" mail.*, sync ,", "", ["main", "mail"], {"mail.send", "mail.slow", "sync"}),
        ("", "mail.*", ["main", "reports"], {"sync", "reports"}),
        ("*", "mail.*,sync", ["reports"], {"reports"}),
    ],
)
def test_handlers_are_chosen_by_patterns(url: str, only: str, without: str, queues: list[str], names: set[str]) -> None:
    chosen = chosen_handlers(only, without, queues, url)
    assert {handler.name for handler in registry.handlers() if handler.name in chosen} == names


def test_the_embedded_transport_tells_handlers_of_one_queue_apart() -> None:
    assert "mail.slow" not in chosen_handlers("", "*.slow", ["mail"], EMBEDDED)


@pytest.mark.parametrize(
    ("only", "without", "queues", "url", "text"),
    [
        ("mial.*", "", ["mail"], EMBEDDED, "No handler is called 'mial.*'"),
        ("", "nothing", ["mail"], EMBEDDED, "No handler is called 'nothing'"),
        ("\u202e", "", ["mail"], EMBEDDED, "u202e"),
        ("mail.*", "mail.*", ["mail"], EMBEDDED, "leaves no handler"),
        (",".join(map(str, range(MAX_PATTERNS + 1))), "", ["mail"], EMBEDDED, "at most 100"),
        ("", "*.slow", ["mail"], RABBITMQ, "'mail.send' is chosen, 'mail.slow' is not, and both use the queue 'mail'"),
        ("mail.*", "", ["main"], RABBITMQ, "No chosen handler uses the queue main"),
        ("mail.*", "", ["standalone"], RABBITMQ, "runs all of them"),
    ],
)
def test_a_choice_that_cannot_be_kept_is_refused(
    only: str, without: str, queues: list[str], url: str, text: str
) -> None:
    with pytest.raises(CommandError, match=text.replace("*", r"\*").replace("'", "'")):
        chosen_handlers(only, without, queues, url)
