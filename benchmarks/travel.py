"""Measures the simulated clock: a month of 100 schedules with retries over a clock change, in one process.

    python -m benchmarks.travel --days 31

The whole month is one transaction that is rolled back, as in a TestCase. The last line says how long it took, also in
seconds of the processor, which other programs on the machine change less.
"""

from __future__ import annotations

import argparse
import cProfile
import pstats
import tempfile
import time
from pathlib import Path

from benchmarks.site import enter

SCHEDULES = 100


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.travel")
    parser.add_argument("--database", default="", help="default: SQLite in a folder of its own")
    parser.add_argument("--days", type=int, default=31)
    parser.add_argument("--profile", action="store_true", help="print where the time goes")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="bench-") as name:
        enter(Path(name), options.database, LOG_LEVEL="ERROR")
        profile = cProfile.Profile() if options.profile else None
        runs, seconds, processor = month(options.days, profile)
        if profile is not None:
            pstats.Stats(profile).sort_stats("tottime").print_stats(40)
        print(f"{runs:,} attempts of {SCHEDULES} schedules in {options.days} days: {seconds:.1f} s")
        milliseconds = (
            f"{seconds / runs * 1000:.1f} ms an attempt, {processor / runs * 1000:.1f} ms of it processor time"
        )
        print(f"{milliseconds}; {processor:.1f} s of the processor")
    return 0


def month(days: int, profile: cProfile.Profile | None) -> tuple[int, float, float]:
    """Run the schedules. Returns the number of attempts, the seconds, and the seconds of the processor."""
    import logging

    from django.db import transaction

    from scheduling.models import Scheduler, Worker
    from scheduling.testing import travel

    logging.disable(logging.CRITICAL)
    with transaction.atomic(), travel("2026-03-15 00:00", tz="Europe/Berlin") as clock:
        Scheduler.objects.all().delete()
        noop, fails = Worker.objects.get(name="tests.noop"), Worker.objects.get(name="tests.fail")
        for number in range(SCHEDULES):
            Scheduler.objects.create(
                worker=fails if number % 10 == 0 else noop,
                schedule=f"{number % 60} {number % 24} * * *",
                timezone="Europe/Berlin",
                max_retries=2,
            )
        begin, processor = time.perf_counter(), time.process_time()
        if profile is not None:
            profile.enable()
        found = clock.forward(days=days, raise_errors=False)
        if profile is not None:
            profile.disable()
        taken, processor = time.perf_counter() - begin, time.process_time() - processor
        transaction.set_rollback(True)
    return len(found), taken, processor


if __name__ == "__main__":
    raise SystemExit(main())
