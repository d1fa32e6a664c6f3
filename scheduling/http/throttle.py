"""Limits how many requests a token or a user sends in a minute."""

from __future__ import annotations

from threading import local

from django.http import HttpRequest
from ninja.throttling import BaseThrottle, SimpleRateThrottle

from scheduling.conf import get_conf
from scheduling.http.auth import caller_of
from scheduling.logs import get_logger

log = get_logger(__name__)


class _Window(SimpleRateThrottle):
    """The requests of one caller in the last minute. Each request has a window of its own: it keeps what it reads."""

    def __init__(self, owner: str, most: int) -> None:
        super().__init__(f"{most}/m")
        self._owner = owner

    def get_cache_key(self, request: HttpRequest) -> str:
        """The key of the caller."""
        return f"scheduling.api.{self._owner}"


class CallerThrottle(BaseThrottle):
    """CRON_API_PER_MINUTE requests a minute. Django's cache counts them: by default each web process has its own.

    All threads of a web process share this object.
    """

    def __init__(self) -> None:
        self._of_thread = local()

    def allow_request(self, request: HttpRequest) -> bool:
        """Whether the caller may send the request now. If the cache is away, it may."""
        window = _Window(caller_of(request).owner, get_conf().api_per_minute)
        try:
            allowed = bool(window.allow_request(request))
            self._of_thread.wait = None if allowed else window.wait()
        except Exception as error:
            log.warning("The cache cannot count requests of the API: %s", error)
            return True
        return allowed

    def wait(self) -> float | None:
        """How many seconds the caller of this thread's request waits until it may send another one."""
        found: float | None = getattr(self._of_thread, "wait", None)
        return found
