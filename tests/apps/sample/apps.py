"""The app of the tests' handlers. With SLOW_PRUNING set, each batch of a clean-up takes so many seconds more."""

from __future__ import annotations

import os
import time
from typing import Any

from django.apps import AppConfig

from scheduling.signals import executions_pruned


class SampleConfig(AppConfig):
    name = "tests.apps.sample"

    def ready(self) -> None:
        """Connect the receiver that lets a kill fall into the middle of a clean-up."""
        if seconds := float(os.environ.get("SLOW_PRUNING", 0)):

            def wait(**_: Any) -> None:
                time.sleep(seconds)

            executions_pruned.connect(wait, weak=False)
