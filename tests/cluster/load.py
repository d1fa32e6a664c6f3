"""Asks for runs at a steady rate until a file says that it is enough. A process of its own, as a web server is.

    python -m tests.cluster.load FOLDER RUNS_A_SECOND LONG_SECONDS

Each run gets a folder of its own for its marks. The file `asked` has one line for each run whose row was committed:
the number of the run and the id of its row. Each fifth second, one run takes LONG_SECONDS.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import django


def main() -> None:
    """Ask for runs. An error of the database is the caller's answer: this run was not acknowledged."""
    folder, rate, long_seconds = Path(sys.argv[1]), float(sys.argv[2]), float(sys.argv[3])
    django.setup()
    from django.conf import settings
    from django.db import connection

    from scheduling.broker import get_broker
    from scheduling.execution.run_now import run_now
    from scheduling.models import Scheduler

    broker = get_broker(settings.BROKER_URL)
    row = Scheduler.objects.get()
    began, number = time.monotonic(), 0
    with (folder / "asked").open("a", buffering=1) as asked:
        while not (folder / "enough").exists():
            number += 1
            marks = folder / "marks" / str(number)
            marks.mkdir(parents=True)
            seconds = long_seconds if number % round(5 * rate) == 1 else 0.0
            try:
                execution = run_now(row, broker, params={"directory": str(marks), "seconds": seconds})
                asked.write(f"{number} {execution.pk}\n")
            except Exception as error:  # also errors that are no DatabaseError, for example of a lost transaction
                print(f"{time.time():.1f} {number} {error!r}", flush=True)  # noqa: T201
                connection.close()
            # After an outage, the runs are not made up for.
            began = max(began, time.monotonic() - (number + 1) / rate)
            time.sleep(max(0.0, began + number / rate - time.monotonic()))
    broker.close()


if __name__ == "__main__":
    main()
