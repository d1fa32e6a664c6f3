"""Counts what an idle process asks its database server."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable

from benchmarks.site import ROOT

WARM_SECONDS, SECONDS = 20, 60


def statements_a_second(*arguments: str, alerts: bool = False) -> float:
    """Measure the statements per second that one idle command sends to its database server, over a minute.

    Args:
        alerts: whether the process evaluates the alerts. One process of a deployment does.

    A proxy counts the answers of the server. So `BEGIN`, `COMMIT` and what the driver sends by itself count, too.
    """
    from django.db import connection

    from benchmarks.history import clear
    from tests.contract.proxy import Proxy

    class CountingProxy(Proxy):
        answers = 0

        def listener(self) -> Callable[[bytes], None]:
            def heard(_data: bytes) -> None:
                self.answers += 1

            return heard

    clear()
    config = connection.settings_dict
    port = int(config["PORT"] or {"mysql": 3306, "postgresql": 5432}[connection.vendor])
    proxy = CountingProxy(config["HOST"] or "127.0.0.1", port)
    url = os.environ["DATABASE_URL"].replace(f":{port}/", f":{proxy.port}/")
    environment = {**os.environ, "DATABASE_URL": url, "CRON_ALERTS": str(alerts)}
    command = [sys.executable, "manage.py", *arguments]
    process = subprocess.Popen(command, cwd=ROOT, stderr=subprocess.DEVNULL, env=environment)
    try:
        time.sleep(WARM_SECONDS)
        assert proxy.answers, "DATABASE_URL must name the port of the server"
        before = proxy.answers
        time.sleep(SECONDS)
        return (proxy.answers - before) / SECONDS
    finally:
        process.terminate()
        process.wait(30)
        proxy.close()
