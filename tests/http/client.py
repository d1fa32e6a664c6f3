"""A client of the HTTP API with a token."""

from __future__ import annotations

import json
import socket
from typing import Any

from django.contrib.auth.models import User
from django.core.cache.backends.base import BaseCache
from django.test import Client

from scheduling.operations.tokens import make_token
from tests.support import Commands, wait_for


class ApiClient:
    """Sends JSON with a token, and returns Django's responses."""

    def __init__(self, user: User | None, secret: str = "", **options: Any) -> None:
        if user is not None and not secret:
            _token, secret = make_token(user, f"token {id(self)}", **options)
        self.secret = secret
        self._client = Client(headers={"Authorization": f"Bearer {secret}"} if secret else {})

    def send(self, method: str, path: str, body: Any = None, **headers: str) -> Any:
        """Send a request. Names of headers have underscores instead of hyphens."""
        options: dict[str, Any] = {"headers": {name.replace("_", "-"): value for name, value in headers.items()}}
        if body is not None:
            options |= {"data": body, "content_type": "application/json"}
        return self._client.generic(method, f"/cron/{path}", **_encoded(options))

    def get(self, path: str, **headers: str) -> Any:
        return self.send("GET", path, **headers)

    def post(self, path: str, body: Any = None, **headers: str) -> Any:
        return self.send("POST", path, {} if body is None else body, **headers)


def _encoded(options: dict[str, Any]) -> dict[str, Any]:
    data = options.get("data")
    return options if data is None or isinstance(data, str | bytes) else {**options, "data": json.dumps(data)}


class AwayCache(BaseCache):
    """A cache whose server is away."""

    def __init__(self, _location: str, params: dict[str, Any]) -> None:
        super().__init__(params)

    def get(self, *_args: Any, **_options: Any) -> Any:
        raise ConnectionError("the cache is away")

    def set(self, *_args: Any, **_options: Any) -> None:
        raise ConnectionError("the cache is away")


def started_web(commands: Commands, port: int, **environment: str) -> str:
    """Start a web server that counts no requests, and return its address when it listens."""
    commands.start("run_web", "--port", str(port), **{"CRON_API_PER_MINUTE": "1000000", **environment})
    wait_for(lambda: listens(port), "the web server listens")
    return f"http://127.0.0.1:{port}"


def listens(port: int) -> bool:
    """Return whether a server listens on this port."""
    with socket.socket() as one:
        return one.connect_ex(("127.0.0.1", port)) == 0
