"""Stands in for the module `requests` in the plugins of apprise, so that each of their requests is guarded.

It needs the extra `notify`, so it is imported when needed.
"""

from __future__ import annotations

import io
import time
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import partialmethod
from typing import Any

import requests

from scheduling.notify.guarded_http import Answer, Forbidden, NoAnswer, send_request
from scheduling.notify.time_limit import in_time

CONTENT = ("headers", "params", "data", "json", "auth")
"""The arguments of a request that a plugin chooses. Time limits, certificates and redirects are not among them."""


@dataclass
class ChatCall:
    """What a plugin asked of the network while it sent one message.

    Args:
        until: the end of the time limit, on the monotonic clock.
        is_rehearsal: whether no request is made. The plugin gets an error instead.
        urls: the URL of each request.
        headers: the headers that the plugin gave them.
        ends: how each request ended.
    """

    until: float
    is_rehearsal: bool = False
    urls: list[str] = field(default_factory=list)
    headers: list[str] = field(default_factory=list)
    ends: list[Answer | Forbidden | NoAnswer] = field(default_factory=list)

    def run(self, action: Callable[[], Any]) -> tuple[bool, Any]:
        """Call the function as `in_time` does. Its requests are those of this call."""

        def work() -> Any:
            _current.set(self)
            return action()

        return in_time(work, self.until)

    def request(self, method: str, url: str, **options: Any) -> requests.Response:
        """Send a request of a plugin through the guard.

        Raises:
            requests.RequestException: the request was not made or not answered. Plugins expect these errors.
        """
        content = {name: options[name] for name in CONTENT if options.get(name) is not None}
        self.urls.append(requests.Request(method, url, params=content.get("params")).prepare().url or "")
        self.headers += [str(value) for value in (content.get("headers") or {}).values()]
        left = self.until - time.monotonic()
        if self.is_rehearsal or options.get("files") or left <= 0:
            raise requests.ConnectionError("not sent")
        try:
            answer = send_request(method, url, left, **content)
        except (Forbidden, NoAnswer) as error:
            self.ends.append(error)
            raise requests.ConnectionError("no answer") from None
        self.ends.append(answer)
        return _response(answer, self.urls[-1])


_current: ContextVar[ChatCall] = ContextVar("chat_call")


def _response(answer: Answer, url: str) -> requests.Response:
    response = requests.Response()
    response.status_code, response.url, response.raw = answer.status, url, io.BytesIO(answer.body)
    # The body is unpacked already.
    response.headers.update(
        {name: value for name, value in answer.headers.items() if name.lower() != "content-encoding"}
    )
    response.encoding = requests.utils.get_encoding_from_headers(response.headers)
    return response


class GuardedRequests:
    """The part of the module `requests` that the plugins use. A plugin that wants more gets an AttributeError."""

    codes = requests.codes
    RequestException = requests.RequestException

    def request(self, method: str, url: str, *arguments: Any, **options: Any) -> requests.Response:
        """Send a request, as `requests.request` does."""
        if arguments:  # `requests.post` takes the body as its second argument
            options["data"] = arguments[0]
        return _current.get().request(method, url, **options)

    get = partialmethod(request, "GET")
    post = partialmethod(request, "POST")
    put = partialmethod(request, "PUT")
    patch = partialmethod(request, "PATCH")
    delete = partialmethod(request, "DELETE")
