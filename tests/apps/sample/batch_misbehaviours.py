"""Batch handlers that misbehave, by kind. Each kind names the outcomes that the runs of the batch may have."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from scheduling.core.steps import FencedOff, HandedBack
from scheduling.handlers import BatchRun, RetryableError, SoftTimeLimit, worker
from tests.apps.sample import returns
from tests.apps.sample.habits import NEVER
from tests.apps.sample.misbehaviours import MisbehaviourParams, _BadReprError, _BadTextError, _frame, _send


class BatchKind(NamedTuple):
    """What a handler returns for a batch of so many runs, and the outcomes that its runs may have."""

    call: Callable[[int], Any]
    outcomes: str = "failed"
    time_limit: int = 0


class _Odd(list[Any]):
    """A list that cannot be read."""

    def __iter__(self) -> Any:
        raise KeyboardInterrupt


class _Classless:
    """Something whose class cannot be asked for."""

    @property
    def __class__(self) -> Any:  # type: ignore[override]
        raise SystemExit(0)


def _strange_delay() -> RetryableError:
    error = RetryableError("later")
    error.retry_after = {1: object()}  # type: ignore[assignment]
    return error


BATCHES: dict[str, BatchKind] = {
    "too few results": BatchKind(lambda count: [1] * (count - 1)),
    "too many results": BatchKind(lambda count: [1] * (count + 1)),
    "no results": BatchKind(lambda count: []),
    "results that are no JSON": BatchKind(lambda count: [{1, 2}] * count, "succeeded"),
    "a list that cannot be read": BatchKind(lambda count: _Odd([1] * count)),
    "results without a class": BatchKind(lambda count: [_Classless()] * count, "succeeded failed"),
    "huge results": BatchKind(lambda count: ["x" * 40_000_000] * count, "succeeded"),
    "a generator": BatchKind(lambda count: (1 for _ in range(count)), "succeeded"),
    "errors without a text": BatchKind(lambda count: [_BadTextError()] * count),
    "errors that cannot be shown": BatchKind(lambda count: [_BadReprError("x")] * count),
    "exits": BatchKind(lambda count: [SystemExit(0)] * count),
    "interrupts": BatchKind(lambda count: [KeyboardInterrupt(), HandedBack(), FencedOff(), SoftTimeLimit()][:count]),
    "error classes": BatchKind(lambda count: [UnicodeDecodeError] * count),
    "a strange delay": BatchKind(lambda count: [_strange_delay()] * count),
    "the call exits": BatchKind(lambda count: sys.exit(3)),
    "SIGKILL": BatchKind(lambda count: os.kill(os.getpid(), signal.SIGKILL), "crashed"),
    **{f"returns {name}": BatchKind(lambda _count, call=call: call(), "succeeded failed")  # type: ignore[misc]
       for name, call in returns.RETURNS.items()},
    **{f"results: {name}": BatchKind(lambda count, call=call: [call()] * count, "succeeded failed")  # type: ignore[misc]
       for name, call in returns.RETURNS.items()},
}  # fmt: skip

FORGED = {"forged results": "failed", "forged results of others": "succeeded"}


@worker("tests.misbehave_batch", params=MisbehaviourParams, retry=NEVER, batch_size=4, batch_wait=0.1)
def misbehave_together(batch: Sequence[MisbehaviourParams], run: BatchRun) -> Any:
    """Misbehaves in the named way."""
    first, kind = run.runs[0], batch[0].kind
    if kind in FORGED:
        entries: list[Any] = [{"outcome": "failed", "members": [[]], "retry_after": []}] * len(batch)
        if kind == "forged results of others":
            entries = [5] * len(batch)
        common = {"op": "ended", "outcome": "succeeded", "execution_id": first.execution_id, "attempt": first.attempt}
        _send(_frame(**common, members=entries))
        _send(_frame(**common | {"op": "rested"}, clean=True, memory=1))
        return None
    return BATCHES[kind].call(len(batch))


KINDS = BATCHES | {name: BatchKind(int, outcome) for name, outcome in FORGED.items()}
