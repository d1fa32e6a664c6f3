"""Stop signals, and what `ShutdownRequest` does after its end."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from scheduling.processes.shutdown import ShutdownRequest


def test_a_late_request_to_stop_is_not_written_into_a_file_that_has_got_the_descriptor(tmp_path: Path) -> None:
    with ShutdownRequest() as stop:
        numbers = {stop._read, stop._write}
    files = [os.open(tmp_path / str(number), os.O_CREAT | os.O_RDWR) for number in range(4)]
    assert numbers <= set(files)
    stop.ask()
    assert [(tmp_path / str(number)).read_bytes() for number in range(4)] == [b""] * 4
    for number in files:
        os.close(number)


def test_a_drain_is_patient_until_a_stop_signal_comes() -> None:
    with ShutdownRequest(drains=True) as stop:
        signal.raise_signal(signal.SIGUSR1)
        assert (stop.asked, stop.patient) == (1, True)
        signal.raise_signal(signal.SIGUSR1)
        assert (stop.asked, stop.patient) == (1, True)
        signal.raise_signal(signal.SIGTERM)
        assert (stop.asked, stop.patient) == (1, False)
        signal.raise_signal(signal.SIGUSR1)  # too late: it does not make the process wait again
        assert (stop.asked, stop.patient) == (1, False)
        signal.raise_signal(signal.SIGTERM)
        assert (stop.asked, stop.patient) == (2, False)
    assert signal.getsignal(signal.SIGUSR1) == signal.SIG_DFL
