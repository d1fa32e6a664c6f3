"""The tests check how the delivery options change the files of a run, from the params to the artefacts."""

from __future__ import annotations

from typing import Any

import pytest
from django.core import mail
from django.utils import translation
from django.utils.translation import gettext_lazy

from reports.delivery import deliver
from reports.delivery_options import DeliveryOptions
from reports.registry import report
from scheduling.handlers import Run, find
from scheduling.handlers.params import validate
from scheduling.models import Artefact
from tests.reports.support import Numbers, execution_of, run_of

pytestmark = pytest.mark.django_db


class Both(Numbers):
    """A report that makes two files, each with a byte order mark."""

    formats = ("csv", "jsonl")

    def filename(self, params: Any, run: Run) -> str:
        return "numbers"


def delivered(**options: Any) -> list[str]:
    """Deliver a report with these options and return the names of its files."""
    made = deliver(Both(), None, run_of(execution_of()), DeliveryOptions(**options))
    assert list(Artefact.objects.order_by("pk")) == made
    return [artefact.filename for artefact in made]


def test_without_options_the_controller_chooses() -> None:
    assert delivered() == ["numbers.csv", "numbers.jsonl"]


@pytest.mark.parametrize("name", ["csv", "html", "json", "jsonl", "xlsx"])
def test_the_chosen_format_replaces_those_of_the_controller(name: str) -> None:
    assert delivered(format=name) == [f"numbers.{name}"]


@pytest.mark.parametrize(
    ("filename", "names"),
    [
        ("sales 2026", ["sales_2026.csv", "sales_2026.jsonl"]),
        ("sales.csv", ["sales.csv", "sales.csv.jsonl"]),
        ("../../etc/passwd\r\n\x00", ["etcpasswd.csv", "etcpasswd.jsonl"]),
        ("///", ["report.csv", "report.jsonl"]),
    ],
)
def test_the_chosen_name_is_made_safe(filename: str, names: list[str]) -> None:
    assert delivered(filename=filename) == names


@pytest.mark.parametrize(("title", "shown"), [(gettext_lazy("Yes"), "Ja"), ("", "numbers")])
def test_a_page_has_the_title_of_the_report_in_the_language_of_the_run(title: Any, shown: str) -> None:
    class Titled(Numbers):
        formats = ("html",)

    Titled.title = title
    with translation.override("de"):
        (artefact,) = deliver(Titled(), None, run_of(execution_of()))
    with artefact.file.open() as file:
        assert f"<h1>{shown}</h1>" in file.read().decode()


def test_recipients_are_not_dropped_in_silence() -> None:
    names = delivered(recipients=["ann@example.com"])
    (message,) = mail.outbox
    assert message.to == ["ann@example.com"]
    assert [name for name, _content, _type in message.attachments] == names


@pytest.mark.usefixtures("own_registry")
def test_a_run_uses_the_options_of_its_params() -> None:
    report("tests.both")(Both)
    handler = find("report", "tests.both")
    options = {"format": "json", "filename": "totals"}
    params = validate(handler, {"options_interface": {"delivery": options}})
    assert handler.call(params, run_of(execution_of())) == {"rows": 2, "files": ["totals.json"]}
    mailed = validate(handler, {"options_interface": {"delivery": {"recipients": ["ann@example.com"]}}})
    handler.call(mailed, run_of(execution_of()))
    assert [message.to for message in mail.outbox] == [["ann@example.com"]]
