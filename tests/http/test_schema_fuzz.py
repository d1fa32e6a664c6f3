"""Generated requests to each operation of the OpenAPI document, as users of three roles. `tests.hostile.fuzz` has the
volume and the seed.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest
from django.core.signals import request_finished, request_started
from django.db import close_old_connections
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from schemathesis import Case, GenerationMode

from scheduling.management.groups import ROLES
from tests.hostile import fuzz
from tests.http.fuzzed_api import Fuzzer
from tests.http.known_values import Values, known_values, with_known_values
from tests.http.team_rows import make_teams


@pytest.fixture
def fuzzer(db: None, settings: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> Iterator[Fuzzer]:
    settings.MEDIA_ROOT, settings.ALLOWED_HOSTS, settings.CRON_API_PER_MINUTE = tmp_path, ["*"], 1_000_000
    caplog.set_level("CRITICAL", "django.request")  # a warning for each refusal
    signals = (request_started, request_finished)
    for signal in signals:  # as Django's test client: the connection of the test stays open
        signal.disconnect(close_old_connections)
    yield Fuzzer(make_teams())
    for signal in signals:
        signal.connect(close_old_connections)


def test_the_api_keeps_its_document(fuzzer: Fuzzer) -> None:
    amount, known, turn = fuzz.amount(fuzz.API, 75), known_values(fuzzer.teams), 0
    operations = fuzzer.operations
    while fuzzer.sent < amount:
        each = max(1, (amount - fuzzer.sent) // (len(operations) * len(ROLES)))
        for operation in operations:
            limits = list(fuzzer.limits(operation))
            for role in ROLES:
                pick = fuzz.generator(f"{operation.label} {role} {turn}")
                for case in pick.sample(limits, min(each // 2, len(limits))):
                    fuzzer.send(with_known_values(pick, case, known), role)
                _generate(fuzzer, operation, role, each - each // 2, pick, known)
            _generate(fuzzer, operation, "", 1, fuzz.generator(f"{operation.label} {turn}"), known)
        turn += 1
    fuzz.report("api", requests=fuzzer.sent, operations=len(operations), answers=dict(sorted(fuzzer.answers.items())))
    fuzzer.faults.check()


def _generate(fuzzer: Fuzzer, operation: Any, role: str, count: int, pick: Random, known: Values) -> None:
    """Send cases that fit the document, and cases that do not."""
    positive, negative = (operation.as_strategy(generation_mode=mode) for mode in GenerationMode)

    @seed(pick.randrange(2**32))
    @settings(max_examples=count, phases=[Phase.generate], database=None, suppress_health_check=list(HealthCheck))
    @given(st.one_of(positive, negative))
    def send(case: Case) -> None:
        fuzzer.send(with_known_values(pick, case, known), role)

    send()
