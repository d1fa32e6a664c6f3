"""TARGET_KINDS describes the kinds of targets. Other code uses this table and does not list the kinds itself."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from scheduling.core.messages import DecodeError, decode
from scheduling.core.targets import A_TARGET, TARGET_KINDS
from scheduling.handlers.targets import NAME_FIELD, target_model
from scheduling.models import Scheduler

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("type_", TARGET_KINDS)
def test_kind_has_a_foreign_key_and_a_model_with_its_columns(type_: str) -> None:
    kind, model = TARGET_KINDS[type_], target_model(type_)
    assert Scheduler._meta.get_field(type_).related_model is model
    assert (model._meta.label, model._meta.model_name, model._meta.verbose_name) == (kind.model, type_, type_)
    for column in (kind.name_column, *kind.searched):
        model._meta.get_field(column)
    row = model(**{kind.name_column: "its name"})
    assert row.handler_name == (kind.handler or "its name")  # type: ignore[attr-defined]
    assert (type_ in NAME_FIELD) is not bool(kind.handler)


def test_other_kinds_are_refused_with_the_list_of_kinds() -> None:
    assert A_TARGET == "a worker, a report or a reminder"
    with pytest.raises(LookupError, match=A_TARGET):
        target_model("robot")
    with pytest.raises(DecodeError, match="worker, report, reminder"):
        decode(b'{"type": "robot", "id": 1}')


def test_no_other_code_lists_the_kinds() -> None:
    sources = [path for app in ("scheduling", "reports", "cronsite") for path in (ROOT / app).rglob("*.*")]
    listed = re.compile(
        r"""["'](worker|report|reminder)["'][^\n]*["'](?!\1)(worker|report|reminder)["']|^ *["']worker["']: """
    )
    assert not [
        path.name
        for path in sources
        if path.suffix in {".py", ".js"} and "migrations" not in path.parts and listed.search(path.read_text())
    ]
