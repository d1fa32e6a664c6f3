"""Handlers that print what they know of their run, and handlers that use a known amount of resources."""

from __future__ import annotations

import subprocess
import sys
import time
from io import BytesIO
from typing import Any

from pydantic import BaseModel

from scheduling.handlers import AttachmentError, Run, worker
from tests.apps.sample.marks import MarkParams, mark

CPU_SECONDS = 0.3
BYTES = 150 * 1024 * 1024


@worker("tests.tell_release")
def tell_release(params: BaseModel, run: Run) -> None:
    """Prints the release of the code, and the headers of the run."""
    print(f"release {run.release}")  # noqa: T201
    headers: Any = run.headers
    try:
        headers["trace"] = "changed"
    except TypeError:
        print(f"headers {headers.get('trace')} {headers.get('Authorization')} {len(headers)}, read-only")  # noqa: T201


@worker("tests.tell_occasion")
def tell_occasion(params: BaseModel, run: Run) -> None:
    """Prints what has caused the run, and its due instant."""
    print(f"{run.trigger} {run.scheduled_at.isoformat()}")  # noqa: T201


@worker("tests.use_resources")
def use_resources(params: BaseModel, run: Run) -> None:
    """Uses memory, and CPU time in a process that it waits for."""
    memory = bytearray(BYTES)
    memory[::4096] = b"x" * len(memory[::4096])
    burn = f"import time\nwhile time.process_time() < {CPU_SECONDS}: pass"
    subprocess.run([sys.executable, "-S", "-c", burn], check=True)


@worker("tests.burn")
def burn(params: BaseModel, run: Run) -> None:
    """Uses CPU time, and fails."""
    until = time.process_time() + CPU_SECONDS
    while time.process_time() < until:
        pass
    raise RuntimeError("it is hot")


@worker("tests.attach")
def attach(params: BaseModel, run: Run) -> None:
    """Attaches a file, and tries to attach a second one of the same name."""
    run.attach(BytesIO(b"a page"), "Invoice 7.pdf")
    try:
        run.attach(BytesIO(b"another page"), "Invoice 7.pdf")
    except AttachmentError as error:
        print(error)  # noqa: T201


@worker("tests.until_cancelled", params=MarkParams)
def until_cancelled(params: MarkParams, run: Run) -> None:
    """Ends in order as soon as the run is cancelled."""
    print(f"cancelled before: {run.cancelled}")  # noqa: T201
    mark(params, run)
    while not run.cancelled:
        time.sleep(0.01)
    print("ended by itself")  # noqa: T201


@worker("tests.looks_once", params=MarkParams)
def looks_once(params: MarkParams, run: Run) -> None:
    """Looks whether the run is cancelled, and then does not look again."""
    _ = run.cancelled
    never_looks(params, run)


@worker("tests.never_looks", params=MarkParams)
def never_looks(params: MarkParams, run: Run) -> None:
    """Looks whether the run is cancelled only when it is ended."""
    mark(params, run)
    try:
        time.sleep(600)
    finally:
        print(f"interrupted, cancelled: {run.cancelled}")  # noqa: T201
