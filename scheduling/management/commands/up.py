"""`manage.py up` runs the web server, producers and consumers on one machine with one command."""

from __future__ import annotations

import os
import sys
from argparse import ArgumentParser, ArgumentTypeError
from collections.abc import Callable
from typing import Any

from django.conf import settings
from django.core.management import call_command, get_commands
from django.core.management.base import BaseCommand, CommandError
from django.db import DatabaseError, connection, connections
from django.db.migrations.executor import MigrationExecutor

from scheduling.conf import get_conf
from scheduling.management import command_line, demo
from scheduling.management.child import ChildSpec
from scheduling.management.first_start import Account, ensure_admin, ensure_data_dir, ensure_secret_key
from scheduling.management.foreman import Foreman
from scheduling.management.log_prefix import Prefixer, wants_colour
from scheduling.management.metrics_port import must_have_prometheus_client
from scheduling.management.reported_starts import ReportedStarts
from scheduling.management.restart import OPTION
from scheduling.management.service_demand import ServiceDemand
from scheduling.management.welcome import Welcome, WelcomeWithoutWeb

INTERRUPTED = 130
"""The exit code after Ctrl-C during the start. Shells report the same code for any command that Ctrl-C has ended."""

SECONDS_ABOVE_CONSUMER = 5
"""The foreman waits this many seconds longer than the grace time of the runs. In these seconds, a consumer gives back
its runs and stops."""

SERVICES = "services"
"""The name of the standalone consumer in the output. It runs while there are services."""

_STANDALONE = ("run_worker", "--standalone", OPTION, "--skip-checks")


class Command(BaseCommand):
    """Prepares the database, then starts the foreman, which runs the web server, producers and consumers."""

    help = "Migrate, then run the admin, a producer and a consumer together. Ctrl-C stops all of them."
    requires_system_checks: list[str] = []  # `_prepare` runs the checks, after it has created a secret key

    def add_arguments(self, parser: ArgumentParser) -> None:
        """--host, --port, --no-web, --no-demo, --producers, --consumers, --concurrency, --grace, --metrics-port."""
        add = parser.add_argument
        port, count, seconds = _number(1, 65_535), _number(1, 256), _number(0, 86_400)
        add("--host", default="127.0.0.1", help="Address to listen on (default: %(default)s).")
        add("--port", type=port, default=8000, help="First port to try (default: %(default)s).")
        add("--no-web", action="store_true", help="Without a web server, for a project that runs its own.")
        add("--no-demo", action="store_true", help="Without demo schedules; existing ones are paused.")
        add("--producers", type=count, default=1, metavar="N", help="How many (default: %(default)s).")
        add("--consumers", type=count, default=1, metavar="N", help="How many (default: %(default)s).")
        add("--concurrency", type=count, default=4, metavar="N", help="Runs at a time (default: %(default)s).")
        limit = "Time that runs have to finish after Ctrl-C (default: CRON_GRACE_SECONDS)."
        add("--grace", type=seconds, metavar="SECONDS", help=limit)
        first = "First of the ports on which each producer, and then each consumer, serves its own metrics."
        add("--metrics-port", type=port, metavar="PORT", help=first)

    def handle(self, *_args: Any, **options: Any) -> None:
        """Prepare the site, run it until a stop signal, and exit with the foreman's exit code."""
        if os.name != "posix":
            raise CommandError("This command needs Linux or macOS. On Windows, run it inside WSL.")
        # Only this user may read SQLite's files, the secret key and report files. The processes that
        # `up` starts inherit the umask.
        previous = os.umask(0o077)
        try:
            code = self._start(options)
        finally:
            os.umask(previous)
        if code:
            sys.exit(code)

    def _start(self, options: dict[str, Any]) -> int:
        if options["metrics_port"] is not None:
            must_have_prometheus_client()
        from_shell = bool(getattr(self, "_called_from_command_line", False))
        argv = command_line.command_line(from_shell=from_shell)
        demo.choose(not options["no_demo"], [*argv, *sys.argv[1:]] if from_shell else None)
        try:
            port = None if options["no_web"] else self._port(options["host"], options["port"])
            account = self._prepare(with_demo=not options["no_demo"])
            connections.close_all()  # the foreman itself needs no database connection
            return self._run(argv, port, account, options)
        except KeyboardInterrupt:
            self.stdout.write("\nStopped before everything was started.")
            return INTERRUPTED

    def _prepare(self, *, with_demo: bool) -> Account:
        """Create the data folder, secret key, tables, demo and first user. Returns the account to sign in with."""
        if hasattr(settings, "DATA_DIR"):
            ensure_data_dir()  # SQLite does not create the folder of a database file
        key_file = ensure_secret_key()
        if key_file is not None:
            self.stdout.write(f"Made a secret key: {key_file}")
        self.check()
        try:
            self._migrate()
            if not with_demo:
                if paused := demo.pause_schedules():
                    self.stdout.write(f"Paused {paused} demo schedules.")
            elif "load_demo" in get_commands():
                call_command("load_demo", once=True, stdout=self.stdout)
            return ensure_admin()
        except DatabaseError as error:
            raise CommandError(
                f"The database cannot be used: {str(error).strip()}. See that it runs, and that DATABASE_URL "
                "(or DATABASES in your settings) names it."
            ) from error

    def _migrate(self) -> None:
        executor = MigrationExecutor(connection)
        plan = executor.migration_plan(executor.loader.graph.leaf_nodes())
        call_command("migrate", interactive=False, verbosity=0)
        self.stdout.write(f"Database ready ({len(plan)} migrations applied)." if plan else "Database ready.")

    def _port(self, host: str, wanted: int) -> int:
        try:
            port = command_line.free_port(host, wanted)
        except OSError as error:
            problem = f"Cannot listen on {command_line.address_of(host, wanted)}: {error.strerror}."
            raise CommandError(f"{problem} Choose another --host or --port.") from error
        if port is None:
            raise CommandError(f"Port {wanted} and those after it are all taken. Name a free one with --port.")
        if port != wanted:
            self.stdout.write(f"Port {wanted} is taken, using {port}.")
        return port

    def _run(self, argv: list[str], port: int | None, account: Account, options: dict[str, Any]) -> int:
        slots = f"--concurrency={options['concurrency']}"
        web = {"web": ["run_web", f"--host={options['host']}", f"--port={port}", OPTION]}
        commands = {
            **({} if port is None else web),
            # `up` has run the system checks. Each process would print their warnings again, at every start.
            **_numbered("producer", options["producers"], ["run_scheduler", OPTION, "--skip-checks"]),
            **_numbered("consumer", options["consumers"], ["run_worker", slots, OPTION, "--skip-checks"]),
        }
        at_work = [name for name in commands if name != "web"]
        if options["metrics_port"] is not None:
            for number, name in enumerate(at_work, options["metrics_port"]):
                commands[name].append(f"--metrics-port={number}")
        colour = options["force_color"] or (not options["no_color"] and wants_colour(self.stdout))
        out = Prefixer(self.stdout, [*commands, SERVICES], own="up", colour=colour)
        # The foreman's processes write to pipes, so they cannot detect the terminal.
        env = {**os.environ, "PYTHONUNBUFFERED": "1", "CRON_LOG_COLOUR": "1" if colour else ""}
        grace: int = get_conf().grace_seconds
        if options["grace"] is not None:
            grace = options["grace"]
            env["CRON_GRACE_SECONDS"] = str(grace)  # consumers must give back their runs before the foreman kills them
        path = [f"--pythonpath={options['pythonpath']}"] if options.get("pythonpath") else []
        specs = [ChildSpec(name, [*argv, *arguments, *path], env) for name, arguments in commands.items()]
        demand = ServiceDemand()
        specs.append(ChildSpec(SERVICES, [*argv, *_STANDALONE, *path], env, demand.arguments))
        foreman = Foreman(specs, out, grace=grace + SECONDS_ABOVE_CONSUMER)
        reported = ReportedStarts(lambda: foreman.pids(at_work), len(at_work))

        def ready() -> bool:
            return reported() and foreman.all_running()

        welcome: Welcome | WelcomeWithoutWeb = (
            WelcomeWithoutWeb(ready, out, account)
            if port is None
            else Welcome(ready, out, options["host"], port, account)
        )
        with demand, reported:
            out.say(f"Starting {', '.join(commands)}.")
            try:
                return int(foreman.run(welcome))
            finally:
                welcome.leave()


def _numbered(name: str, count: int, arguments: list[str]) -> dict[str, list[str]]:
    names = [name] if count == 1 else [f"{name}.{number}" for number in range(1, count + 1)]
    return {name: [*arguments] for name in names}


def _number(low: int, high: int) -> Callable[[str], int]:
    def read(text: str) -> int:
        if not text.isdecimal() or not low <= int(text) <= high:
            raise ArgumentTypeError(f"{text} is not a whole number from {low} to {high}")
        return int(text)

    return read
