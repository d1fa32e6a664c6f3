"""Prints the site's address and the account to sign in with, when everything has started."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import suppress

from django.contrib import admin
from django.core.management import get_commands
from django.urls import NoReverseMatch, reverse

from scheduling.admin_site import CronAdminSite
from scheduling.management.command_line import address_of, answer, reachable_host, shown_command
from scheduling.management.first_start import Account
from scheduling.management.log_prefix import Prefixer

PATIENCE_SECONDS = 60.0
_RULE = "-" * 72


class Welcome:
    """Prints a welcome (the site's address and the account) when the site answers and everything else has started.

    Call the object regularly until the call returns False.

    Args:
        ready: returns whether everything except the site has started.
        out: receives the welcome.
        host: the address that the site listens on.
        port: the port that the site listens on.
        account: the account to sign in with.
        look: returns the HTTP status of a page; None if there is no answer. The arguments are host, port and path.
    """

    def __init__(
        self,
        ready: Callable[[], bool],
        out: Prefixer,
        host: str,
        port: int,
        account: Account,
        look: Callable[[str, int, str], int | None] = answer,
    ) -> None:
        self._ready, self._out, self._account, self._look = ready, out, account, look
        self._host, self._port = reachable_host(host), port
        self._path = _first_page()
        self._complain_at: float | None = time.monotonic() + PATIENCE_SECONDS
        self._told = False

    def __call__(self) -> bool:
        """Print the welcome if the site answers and all is ready. Returns True if the caller must call again."""
        status = self._look(self._host, self._port, self._path)
        if status is not None and self._ready():
            self._out.plain(self._text(status))
            self._told = True
            return False
        if self._complain_at is not None and time.monotonic() > self._complain_at:
            self._complain_at = None
            self._out.say(f"Not everything has started after {PATIENCE_SECONDS:g} s; the lines above say why.")
        return True

    def leave(self) -> None:
        """Print a new account's password if the welcome was never printed. Otherwise the password would be lost."""
        _keep_password(self._account, told=self._told, out=self._out)

    def _text(self, status: int) -> str:
        lines = [
            _headline(status),
            "",
            f"Open      http://{address_of(self._host, self._port)}{self._path}",
            *_sign_in(self._account),
            *_second_shell(),
            "",
            "Ctrl-C stops everything.",
        ]
        return "\n".join(["", _RULE, *(f"  {line}".rstrip() for line in lines), _RULE, ""])


class WelcomeWithoutWeb:
    """Says that everything has started, if `up` starts no web server. Call it like a `Welcome`."""

    def __init__(self, ready: Callable[[], bool], out: Prefixer, account: Account) -> None:
        self._ready, self._out, self._account = ready, out, account
        self._told = False

    def __call__(self) -> bool:
        """Print the lines if all is ready. Returns True if the caller must call again."""
        if not self._ready():
            return True
        lines = ["Everything is running, without a web server.", "", *_sign_in(self._account)]
        lines += ["", "Ctrl-C stops everything."]
        self._out.plain("\n".join(["", _RULE, *(f"  {line}".rstrip() for line in lines), _RULE, ""]))
        self._told = True
        return False

    def leave(self) -> None:
        """Print a new account's password if it was never printed. Otherwise the password would be lost."""
        _keep_password(self._account, told=self._told, out=self._out)


def _keep_password(account: Account, *, told: bool, out: Prefixer) -> None:
    if account.password and not told:
        out.say(f"The user {account.name} was made, with the password {account.password}")


def _first_page() -> str:
    """The dashboard, which is the first page of our own admin site. In other sites, it is one of many pages."""
    ours = isinstance(admin.site, CronAdminSite)
    for name in ("admin:index",) if ours else ("admin:scheduling_dashboard_changelist", "admin:index"):
        with suppress(NoReverseMatch):
            return reverse(name)
    return "/"


def _headline(status: int) -> str:
    if status == 400:
        return "Everything is running, but the site refuses this host: add it to ALLOWED_HOSTS."
    if status >= 400:
        return f"Everything is running, but the site answers {status}: see the lines of web above."
    return "Everything is running."


def _second_shell() -> list[str]:
    """The command for another shell. Without CRON_DEMO, its process would not know the workers of the demo."""
    if os.environ.get("CRON_DEMO") != "1" or "load_demo" not in get_commands():
        return []
    return ["Commands  in another shell:", f"          CRON_DEMO=true {shown_command('cron', 'status')}"]


def _sign_in(account: Account) -> list[str]:
    if account.password:
        return [f"User      {account.name}", f"Password  {account.password}   (shown only now: keep it)"]
    if account.name:
        return [
            f"User      {account.name}",
            "Password  was shown once, at the first start. To set another:",
            f"          {shown_command('changepassword', account.name)}",
        ]
    return ["User      no account may sign in yet. To create one:", f"          {shown_command('createsuperuser')}"]
