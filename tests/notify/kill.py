"""Kills a consumer while it sends the messages of a reminder."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Sized

from scheduling.models import SchedulerExecution
from tests.support import Commands, wait_for


def kill_while_it_sends(
    commands: Commands,
    consumer: Callable[[], subprocess.Popen[bytes]],
    execution: SchedulerExecution,
    arrived: Sized,
    seconds: float,
) -> None:
    """Kill a consumer some seconds after its first message, and let a second consumer send the others.

    Args:
        consumer: starts a consumer whose leases last 3 s.
        arrived: the messages that have arrived. It is empty at the call.
    """
    worker = consumer()
    wait_for(lambda: len(arrived), "the first message is sent")
    time.sleep(seconds)
    worker.kill()
    worker.wait()
    after = consumer()
    producer = commands.start("run_scheduler", CRON_LEASE_SECONDS="3")
    wait_for(lambda: SchedulerExecution.objects.get(pk=execution.pk).state == "succeeded", "the execution succeeds")
    for process in (after, producer):
        commands.stop(process)
