"""The metrics of targets that have not changed are remembered. They are what a fresh process would answer."""

from __future__ import annotations

import random
from typing import Any

import pytest
from django.utils import timezone as clock
from prometheus_client.openmetrics.parser import text_string_to_metric_families as open_families

from scheduling.core.tallies import BOUNDS, OTHER, Total
from scheduling.metrics import exposition as module
from scheduling.metrics import totals as totals_module
from scheduling.metrics.exposition import exposition
from scheduling.metrics.target_lines import MOST_FORMATS, OF_TARGETS, TargetLines
from scheduling.metrics.totals import Totals
from scheduling.models import TallyTotal
from tests.hostile.fuzz import choose_seed
from tests.metrics.scrape import samples

pytestmark = pytest.mark.django_db

OPEN = "application/openmetrics-text; version=1.0.0"
NAMES = ("app.jobs.import_orders", "app.jobs.send", 'a "quoted"\\ one', "a\nb", "a\u2424b", OTHER, "é")
OUTCOMES = ("succeeded", "failed", "timed_out")


@pytest.fixture(autouse=True)
def nothing_known(monkeypatch: pytest.MonkeyPatch) -> None:
    forget(monkeypatch)


def forget(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let this process know nothing of the scrapes before."""
    monkeypatch.setattr(module, "target_totals", Totals().of_targets)
    monkeypatch.setattr(module, "_target_lines", TargetLines())


def total(target: str, outcome: str, bucket: int, **columns: Any) -> TallyTotal:
    one = Total("worker", target, outcome, bucket)
    return TallyTotal(
        key=one.key, target_key=one.target_key, type="worker", target=target, outcome=outcome, bucket=bucket,
        **{"attempts": 1, "milliseconds": 1, **columns},
    )  # fmt: skip


def of_targets(accept: str = "") -> list[str]:
    """The lines about targets, in any order."""
    text = exposition(clock.now(), accept)[0].decode()
    return sorted(line for line in text.splitlines() if any(metric.name in line for metric in OF_TARGETS))


def test_remembered_lines_are_those_of_a_fresh_process(monkeypatch: pytest.MonkeyPatch) -> None:
    luck = random.Random(choose_seed())
    for _round in range(30):
        target, outcome, bucket = luck.choice(NAMES), luck.choice(OUTCOMES), luck.randrange(len(BOUNDS) + 1)
        key = Total("worker", target, outcome, bucket).key
        changed = TallyTotal.objects.filter(key=key)
        what = luck.randrange(4)
        if what == 0:
            changed.delete()
        elif not changed.update(attempts=luck.randrange(9), milliseconds=luck.randrange(9_999), retries=what):
            total(target, outcome, bucket).save()
        accept = luck.choice(("", OPEN))
        remembered = of_targets(accept)
        with monkeypatch.context() as patch:
            forget(patch)
            assert remembered == of_targets(accept)


def test_a_target_that_has_not_changed_is_neither_added_up_nor_written_again(monkeypatch: pytest.MonkeyPatch) -> None:
    TallyTotal.objects.bulk_create(total(name, "succeeded", 0) for name in NAMES[:3])
    exposition(clock.now())
    added, written = list[str](), list[bytes]()
    add, encode = totals_module._added_up, module.choose_encoder
    monkeypatch.setattr(
        totals_module, "_added_up", lambda kind, name, rows: added.append(name) or add(kind, name, rows)
    )

    def counting(accept: str) -> Any:
        own, content_type = encode(accept)

        def write(registry: Any) -> bytes:
            written.append(own(registry))
            return written[-1]

        return write, content_type

    monkeypatch.setattr(module, "choose_encoder", counting)
    exposition(clock.now())
    assert added == []
    assert b"app.jobs" not in b"".join(written)
    TallyTotal.objects.filter(target=NAMES[1]).update(attempts=7)
    assert f'target="{NAMES[1]}",type="worker"}} 7.0' in exposition(clock.now())[0].decode()
    assert added == [NAMES[1]]
    assert NAMES[1].encode() in b"".join(written)
    assert NAMES[0].encode() not in b"".join(written)


@pytest.mark.parametrize("number", [0, 1, 5])
def test_both_formats_can_be_read(number: int) -> None:
    TallyTotal.objects.bulk_create(total(name, "succeeded", 2, milliseconds=1_500) for name in NAMES[:number])
    for _time in range(2):
        body, content_type = exposition(clock.now(), OPEN)
        assert content_type.startswith("application/openmetrics-text")
        assert body.endswith(b"# EOF\n")
        assert body.count(b"# EOF") == 1
        assert len({family.name for family in open_families(body.decode())}) == len(module.names.INSTALLATION)
        samples(exposition(clock.now())[0].decode())


def test_any_number_of_formats_takes_no_more_memory() -> None:
    total("app.jobs.send", "succeeded", 0).save()
    for version in range(9):
        exposition(clock.now(), f"application/openmetrics-text; version=1.0.{version}")
    assert len(module._target_lines._known) == MOST_FORMATS
