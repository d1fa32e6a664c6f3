"""A consumer or a child is killed while a run prints 5 MB. Of the output that is kept, at most the last second is gone.

`TEST_OUTPUT_KILLS=100` kills a hundred times instead of four times.
"""

from __future__ import annotations

import itertools
import os
import random
import re
import signal
import time
from pathlib import Path

import pytest

from scheduling.models import Output, SchedulerExecution
from tests.factories import ManualExecutionFactory, SchedulerFactory
from tests.support import Commands, wait_for

pytestmark = [pytest.mark.processes, pytest.mark.django_db(transaction=True)]

KILLS = int(os.environ.get("TEST_OUTPUT_KILLS", "4"))
SEED = int(os.environ.get("TEST_SEED", "20261122"))
SECONDS = 3.0
LIMIT = 1_000_000
LINE = re.compile(r" OUT line (\d{8}) x{85}$")


def printed_before(path: Path, instant: float) -> int:
    """The number of the last line that was printed before the instant; -1 if there is none."""
    entries = [line.split() for line in path.read_text().splitlines()]
    return max((int(entry[1]) for entry in entries if len(entry) == 2 and float(entry[0]) <= instant), default=-1)


def test_at_most_the_last_second_of_the_output_is_gone(commands: Commands, tmp_path: Path) -> None:
    print(f"seed {SEED}")  # noqa: T201 - shown if the test fails
    pick = random.Random(SEED)
    row = SchedulerFactory(
        rare=True, handler="tests.narrate", params={"directory": str(tmp_path), "seconds": SECONDS}, time_limit=60
    )
    consumer = None
    for number in range(KILLS):
        execution = ManualExecutionFactory(scheduler=row)
        path = tmp_path / f"{execution.pk}.txt"
        if consumer is None or consumer.poll() is not None:
            consumer = commands.start("run_worker")
        wait_for(path.exists, "the run prints")
        time.sleep(pick.uniform(0.1, SECONDS - 0.2))
        execution.refresh_from_db()
        of_child = pick.random() < 0.5
        if of_child:
            child = wait_for(lambda pk=execution.pk: SchedulerExecution.objects.get(pk=pk).pid, "its process is known")
            os.kill(child, signal.SIGKILL)
        else:
            commands.stop(consumer, signal.SIGKILL)
        killed = time.time()
        if of_child:
            wait_for(lambda pk=execution.pk: SchedulerExecution.objects.get(pk=pk).state != "running", "it is settled")
        outputs = Output.objects.filter(execution=execution, attempt=1).order_by("sequence")
        text = "".join(outputs.values_list("text", flat=True))
        found = [int(match.group(1)) for line in text.splitlines() if (match := LINE.search(line))]
        about = f"kill {number} of the {'child' if of_child else 'consumer'}, seed {SEED}"
        assert len(text) <= LIMIT, about
        assert (found or [-1])[-1] >= printed_before(path, killed - 1.0), about
        gaps = [(one, two) for one, two in itertools.pairwise(found) if two != one + 1]
        assert len(gaps) <= 1, (about, gaps)
        if gaps:
            assert len(text) > LIMIT * 3 // 4, about
            assert "left out here" in text, about
        if not of_child:
            SchedulerExecution.objects.filter(pk=execution.pk).update(state="failed", wake_at=None)
