"""A site whose alerts go to a real mail server and a real webhook receiver, and whose heartbeat has a monitor."""

from __future__ import annotations

import json
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from urllib.parse import urlsplit

from django.db import connection

from scheduling.core.alert_rules import RuleKind
from scheduling.models import AlertMessage, AlertRule, Channel, Process
from scheduling.models.alert_watch import AlertWatch
from tests.contract.proxy import Proxy
from tests.notify.chat_server import ChatServer, chat_server
from tests.notify.mail_server import Mailbox, mail_server
from tests.support import Commands, database_url, wait_for

Arrived = Counter[tuple[str, str]]
"""How often the start and the end of each kind of alert was told."""

PROCESSES = {"producer": ["run_scheduler"], "consumer": ["run_worker"]}
SEEN = {
    RuleKind.NO_PRODUCER: "no_producer", RuleKind.NO_CONSUMER: "no_consumer", RuleKind.BROKER_AWAY: "broker_away",
    RuleKind.DATABASE_AWAY: "database_away",
}  # fmt: skip


class AlertSite:
    """Processes of one installation, the servers around it, and what arrived there."""

    def __init__(self, commands: Commands, mailbox: Mailbox, web: ChatServer, port: int, environment: dict[str, str]):
        self._commands, self._mailbox, self._web, self._port = commands, mailbox, web, port
        self._environment = environment
        self.processes: dict[str, subprocess.Popen[bytes]] = {}

    def start(self, *names: str) -> None:
        """Start these processes: `web`, `producer`, `consumer`."""
        for name in names:
            arguments = PROCESSES.get(name, ["run_web", "--port", str(self._port)])
            self.processes[name] = self._commands.start(*arguments, **self._environment)
        kinds = {Process.Kind.PRODUCER: "producer", Process.Kind.CONSUMER: "consumer"}
        for kind, name in kinds.items():
            if name in names:
                pid = self.processes[name].pid
                wait_for(
                    lambda kind=kind, pid=pid: Process.objects.filter(kind=kind, pid=pid).exists(), f"{kind} works"
                )

    def kill(self, *names: str) -> None:
        """Kill these processes, all at once."""
        for name in names:
            self.processes[name].kill()
        for name in names:
            self.processes.pop(name).wait()

    def replace_holder(self) -> None:
        """Kill the process that evaluates, start it again, and wait until another one evaluates.

        What it has sent is on record then. Otherwise the next one would send it once more, and say so.
        """
        wait_for(lambda: not AlertMessage.objects.filter(state=AlertMessage.State.SENDING).exists(), "all is recorded")
        holder = AlertWatch.objects.get().holder
        names = [name for name, process in self.processes.items() if f"-{process.pid}-" in holder]
        name = names[0] if names else "web"  # its worker is a child
        self.kill(name)
        self.start(name)
        wait_for(lambda: AlertWatch.objects.get().holder != holder, "another process has the lease")
        self._evaluated()

    def rules(self, *kinds: RuleKind, seconds: float | None) -> None:
        """Make these rules, and wait until they were evaluated.

        Args:
            seconds: how long a server must be away; None for the default.
        """
        for kind in kinds:
            away = kind in {RuleKind.BROKER_AWAY, RuleKind.DATABASE_AWAY}
            AlertRule.objects.update_or_create(
                name=kind.value,
                defaults={"kind": kind.value, "severity": "critical", "seconds": seconds if away else None},
            )
        self._evaluated()

    def _evaluated(self) -> None:
        for _evaluation in range(2):  # the first one may have begun before
            last = evaluated_at()
            wait_for(lambda last=last: evaluated_at() > last, f"an evaluation\n{self.logs()}")

    def by_webhook(self) -> Arrived:
        """What the webhook receiver got."""
        bodies = [json.loads(body) for body in self._web.at("/alerts")]
        return Counter((told["kind"], told["event"]) for body in bodies for told in body["alerts"])

    def by_mail(self) -> Arrived:
        """What the mail server got. A mail that tells several alerts has a block for each."""
        found: Arrived = Counter()
        for message in self._mailbox.to("anna@example.com"):
            for line in str(message.get_content()).splitlines():  # type: ignore[attr-defined]
                over = line.startswith("Over: ")
                if over or line.startswith("CRITICAL: "):
                    found[line.split(": ")[1], "end" if over else "start"] += 1
        return found

    def pings(self) -> list[str]:
        """The signs of life that the monitor got: `ok` or `fail`."""
        paths = [path for path, _headers, _body in list(self._web.arrived) if path.startswith("/ping")]
        return ["fail" if path.endswith("/fail") else "ok" for path in paths]

    def told(self, *expected: tuple[RuleKind, str], seconds: float = 90.0) -> float:
        """Wait until both servers got exactly this in addition. Returns how long it took, in seconds."""
        begin = time.monotonic()
        wanted = self._so_far + Counter((kind.value, event) for kind, event in expected)

        def arrived() -> bool:
            both = self.by_webhook(), self.by_mail()
            assert all(found <= wanted for found in both), f"{both}, not more than {wanted}\n{self.logs()}"
            return all(found == wanted for found in both)

        try:
            wait_for(arrived, f"{wanted}", seconds)
        except AssertionError as error:
            raise AssertionError(f"{error}: {self.by_webhook()} {self.by_mail()}\n{self.logs()}") from None
        self._so_far = wanted
        return time.monotonic() - begin

    _so_far: Arrived = Counter()

    def nothing_more(self, seconds: float) -> None:
        """For so long, nothing more is told."""
        until = time.monotonic() + seconds

        def over() -> bool:
            both = self.by_webhook(), self.by_mail()
            assert all(found == self._so_far for found in both), f"{both}, not {self._so_far}\n{self.logs()}"
            return time.monotonic() >= until

        wait_for(over, "the time is over", seconds + 10)

    def logs(self) -> str:
        """The output of all processes."""
        return "\n".join(self._commands.log(process) for process in self._commands.started)


def evaluated_at() -> int:
    """When the last evaluation ended, in seconds since 1970; 0 if there was none."""
    return AlertWatch.objects.values_list("evaluated_at", flat=True).first() or 0


@contextmanager
def alert_site(commands: Commands, port: int, broker_url: str, **environment: str) -> Iterator[AlertSite]:
    """Provide a site with one channel of each kind. Nothing is started, and there is no rule."""
    with ExitStack() as opened:
        mailbox, web = opened.enter_context(mail_server()), opened.enter_context(chat_server())
        AlertRule.objects.all().delete()
        webhook = {"kind": "webhook", "address": f"http://{web.host}/alerts", "secret": "s" * 40}
        Channel.objects.create(name="webhook", tells_by_default=True, **webhook)
        Channel.objects.create(name="mail", tells_by_default=True, kind="email", recipients="anna@example.com")
        own = {
            "BROKER_URL": broker_url, "CRON_INTERNAL_HOSTS": web.host, "EMAIL_URL": f"smtp://127.0.0.1:{mailbox.port}",
            "CRON_HEARTBEAT_URL": f"http://{web.host}/ping", **environment,
        }  # fmt: skip
        yield AlertSite(commands, mailbox, web, port, own)


@contextmanager
def database_behind_a_proxy() -> Iterator[tuple[Proxy, str]]:
    """Provide a proxy in front of the database server of the tests, and the URL of the database through it."""
    config: dict[str, Any] = connection.settings_dict
    port = int(config["PORT"] or (5432 if connection.vendor == "postgresql" else 3306))
    proxy = Proxy(config["HOST"] or "127.0.0.1", port)
    parts = urlsplit(database_url())
    login = parts.netloc.rpartition("@")[0]
    try:
        yield proxy, parts._replace(netloc=f"{login}@127.0.0.1:{proxy.port}").geturl()
    finally:
        proxy.close()
