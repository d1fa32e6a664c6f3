"""`manage.py run_web`: the web server that `up` starts."""

from __future__ import annotations

import importlib
import signal
import sys
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from django.apps import apps
from django.conf import settings
from django.contrib.staticfiles.handlers import StaticFilesHandler
from django.core.handlers.wsgi import WSGIHandler
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandParser
from django.core.servers.basehttp import get_internal_wsgi_application

from scheduling.alerts.watcher import Watcher
from scheduling.management.command_line import address_of
from scheduling.management.logging_setup import configure_logging
from scheduling.management.restart import CodeWatch, add_restart_on_change, follows_code, leave
from scheduling.management.web_descriptors import keep_descriptors

WSGI = Callable[..., Iterable[bytes]]


class Command(BaseCommand):
    """Serves the project with gunicorn inside this process. So gunicorn uses this process's import path.

    The command `python -m gunicorn` is not used, for three reasons:

    - It would add the working directory to the import path.
    - It would read a gunicorn.conf.py that may be meant for another server.
    - It would serve no static files in projects where only `runserver` serves static files.
    """

    help = "Serve this site with gunicorn, one process and a few threads. `up` starts it; a larger site has its own."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        """--host, --port, --threads, --restart-on-change."""
        parser.add_argument("--host", default="127.0.0.1", help="Address to listen on (default: %(default)s).")
        parser.add_argument("--port", type=int, default=8000, help="Port to listen on (default: %(default)s).")
        parser.add_argument("--threads", type=int, default=4, help="Requests served at a time (default: %(default)s).")
        add_restart_on_change(parser)

    def handle(self, *_args: Any, **options: Any) -> None:
        """Serve until SIGTERM."""
        configure_logging()
        address = address_of(options["host"], options["port"])
        watch = CodeWatch() if follows_code(options) else None
        try:
            base = importlib.import_module("gunicorn.app.base")
        except ImportError:  # gunicorn is not installed or does not run on this system (Windows)
            _serve_with_django(address, watch, options)
            return
        if watch is not None:
            watch.start()
        try:
            _serve(base, address, options["threads"])
        finally:
            if watch is not None and watch.begun:
                leave(options)  # gunicorn has ended; its own exit code is 0


def _serve_with_django(address: str, watch: CodeWatch | None, options: Mapping[str, Any]) -> None:
    def end(*_args: Any) -> None:
        if watch and watch.begun:
            leave(options)
        sys.exit(0)

    # Unlike gunicorn, Django's server does not handle SIGTERM.
    signal.signal(signal.SIGTERM, end)
    if watch is not None:
        watch.start()
    with Watcher():
        call_command("runserver", address, use_reloader=False)


def _serve(base: Any, address: str, threads: int) -> None:
    opened: list[Watcher] = []
    """The watcher of this process. Only gunicorn's worker has one: its main process forks the worker."""

    def begin(worker: Any) -> None:
        keep_descriptors(worker)
        opened.append(Watcher().__enter__())

    def end(_server: Any, _worker: Any) -> None:
        for watcher in opened:
            watcher.__exit__(None, None, None)

    wanted = {
        "post_worker_init": begin,
        "worker_exit": end,
        "bind": [address],
        "worker_class": "gthread",
        "workers": 1,
        "threads": threads,
        "graceful_timeout": 5,  # admin pages answer within milliseconds; only consumers need a long shutdown
        "loglevel": "warning",
        "control_socket_disable": True,  # otherwise all servers of a user share one control socket in the home folder
    }

    def load_config(self: Any) -> None:
        for name, value in wanted.items():
            if name in self.cfg.settings:
                self.cfg.set(name, value)

    methods = {"load_config": load_config, "load": lambda _self: application_of_project()}
    type("Site", (base.BaseApplication,), methods)().run()


def application_of_project() -> WSGI:
    """The project's WSGI application. A wrapper serves the static files, unless WhiteNoise already serves them."""
    application = get_internal_wsgi_application()
    if not apps.is_installed("django.contrib.staticfiles") or any("whitenoise" in name for name in settings.MIDDLEWARE):
        return application
    # `runserver` uses the same wrapper. This command and `up` are not meant for servers on the internet.
    return StaticFilesHandler(application) if isinstance(application, WSGIHandler) else application
