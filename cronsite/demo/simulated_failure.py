"""Makes the demo handlers fail if the environment variable SIMULATE_FAILURE is `true`, to try retries and the inbox."""

from __future__ import annotations

import os


def fail_if_asked() -> None:
    """Fail, if the environment asks for it. The words are those of the original contract.

    Raises:
        RuntimeError: SIMULATE_FAILURE is `true`.
    """
    if os.environ.get("SIMULATE_FAILURE", "").strip().lower() == "true":
        raise RuntimeError("Simulated failure for testing")
