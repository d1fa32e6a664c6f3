"""Names the processes that a run with `leaves_processes` has left running, and decides whether they live on.

They live on if the handler returned or raised by itself and the result was recorded. In all other cases, they end like
the processes of any other run. For example, if the result was refused, another attempt starts them again.
"""

from __future__ import annotations

import signal
import time

from scheduling.consumer.process_pool import ProcessPool
from scheduling.consumer.running import Running
from scheduling.core.text import one_line
from scheduling.logs import get_logger

log = get_logger(__name__)

NAMES_LENGTH = 250
"""At most so many characters name the processes. `output.NOTES_LENGTH` has room for them."""


def note(run: Running, pool: ProcessPool) -> None:
    """Write the names from the child's answer into the output. Call this function when the run has answered."""
    names = one_line((run.answer or {}).get("left", ""))[:NAMES_LENGTH]
    if not names or not run.config.leaves_processes or run.child is None:
        return
    if run.verdict is None:
        run.left = names
        run.output.note(f"Left running: {names}", time.time())
    else:
        pool.signal(run.child, signal.SIGKILL)  # the consumer ends this run, although the handler has returned


def release(run: Running, pool: ProcessPool, *, recorded: bool) -> None:
    """Let the processes live on, or kill them. Call this function when the run is settled.

    Args:
        recorded: whether the run's result was recorded.
    """
    if not run.left or run.child is None:
        return
    context = {"execution": run.execution_id}
    if recorded:
        log.info("Left running: %s", run.left, extra=context)
        pool.leave(run.child)
    else:
        log.warning("The result was not recorded, so these processes are killed: %s", run.left, extra=context)
        pool.signal(run.child, signal.SIGKILL)
