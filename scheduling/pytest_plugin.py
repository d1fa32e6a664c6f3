"""The fixtures that pytest finds if this package is installed (docs/testing.md).

pytest imports this module before Django's settings are read, so it imports the rest of the package late.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest


@pytest.fixture
def cron_run() -> Callable[..., Any]:
    """`scheduling.testing.run_inline`: run a handler in this process."""
    from scheduling.testing import run_inline

    return run_inline


@pytest.fixture
def cron_drain() -> Callable[..., Any]:
    """`scheduling.testing.drain`: claim and run everything that is due. The test needs the mark `django_db`."""
    from scheduling.testing import drain

    return drain


@pytest.fixture
def cron_travel() -> Callable[..., Any]:
    """`scheduling.testing.travel`: a simulated clock. `forward` needs the mark `django_db`."""
    from scheduling.testing import travel

    return travel
