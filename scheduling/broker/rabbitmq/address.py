"""Reads and checks the URL of one RabbitMQ node. The password never appears in a log or an error."""

from __future__ import annotations

import re
import ssl
from dataclasses import dataclass, field
from urllib.parse import SplitResult, parse_qs, unquote, urlsplit

import pika

from scheduling.core.setting_values import ConfError
from scheduling.processes.identity import container_id

PARAMETERS = ("prefix", "heartbeat", "cafile", "certfile", "keyfile")
"""The parameters that may follow the question mark of a broker URL."""

HEARTBEAT_SECONDS = 30
_PREFIX = re.compile(r"[A-Za-z0-9_.\-]{0,64}")


@dataclass(frozen=True)
class Address:
    """Where the broker is and how to log in. `str(address)` has no password and may be logged.

    Raises:
        ConfError: the URL cannot be read. The error text never contains the password.
    """

    url: str = field(repr=False)

    def __post_init__(self) -> None:
        self.parameters("check", 5.0)

    def __str__(self) -> str:
        parts = self._parts()
        user = f"{unquote(parts.username)}@" if parts.username else ""
        vhost = "" if self.vhost == "/" else f"/{self.vhost}"
        return f"{parts.scheme}://{user}{parts.hostname or 'localhost'}:{self._port(parts)}{vhost}"

    @property
    def vhost(self) -> str:
        """The virtual host; `/` if the URL names no virtual host."""
        return unquote(self._parts().path.removeprefix("/")) or "/"

    @property
    def prefix(self) -> str:
        """The text with which every queue name begins (`?prefix=` in the URL)."""
        return self._query().get("prefix", "")

    def parameters(self, role: str, patience: float, login: float | None = None) -> pika.ConnectionParameters:
        """Make pika's parameters for one connection.

        Args:
            role: the purpose of the connection, shown in RabbitMQ's list of connections.
            patience: the time limit for connecting the socket, in seconds.
            login: the time limit for the whole login, in seconds; by default twice the patience.
        """
        parts, query = self._parts(), self._query()
        if not _PREFIX.fullmatch(self.prefix):
            raise ConfError("CRON_BROKER_URL: prefix= may hold letters, digits, _ . and -, at most 64 of them.")
        heartbeat = query.get("heartbeat", str(HEARTBEAT_SECONDS))
        if not heartbeat.isdecimal() or not 5 <= int(heartbeat) <= 600:
            raise ConfError("CRON_BROKER_URL: heartbeat= is seconds, from 5 to 600.")
        return pika.ConnectionParameters(
            host=parts.hostname or "localhost",
            port=self._port(parts),
            virtual_host=self.vhost,
            credentials=pika.PlainCredentials(unquote(parts.username or "guest"), unquote(parts.password or "guest")),
            ssl_options=self._tls(parts, query),
            heartbeat=int(heartbeat),
            connection_attempts=1,
            socket_timeout=patience,
            stack_timeout=patience * 2 if login is None else login,
            client_properties={"connection_name": f"{container_id()} {role}", "product": "cronsite"},
        )

    def _parts(self) -> SplitResult:
        try:
            parts = urlsplit(self.url)
            _ = parts.port
        except ValueError:
            raise ConfError(
                "CRON_BROKER_URL cannot be read. Write it as amqp://user:password@host:5672/vhost; "
                "a / # ? or @ in the password must be percent-encoded."
            ) from None
        if parts.scheme not in {"amqp", "amqps"}:
            raise ConfError("CRON_BROKER_URL must begin with amqp:// or amqps:// here.")
        return parts

    @staticmethod
    def _port(parts: SplitResult) -> int:
        return parts.port or (5671 if parts.scheme == "amqps" else 5672)

    def _query(self) -> dict[str, str]:
        query = {name: values[-1] for name, values in parse_qs(self._parts().query, keep_blank_values=True).items()}
        unknown = sorted(set(query) - set(PARAMETERS))
        if unknown:
            raise ConfError(
                f"CRON_BROKER_URL has an unknown parameter {unknown[0]!r}; it may be {', '.join(PARAMETERS)}."
            )
        return query

    @staticmethod
    def _tls(parts: SplitResult, query: dict[str, str]) -> pika.SSLOptions | None:
        if parts.scheme != "amqps":
            return None
        try:
            # The default context verifies the certificate chain and the host name. No setting switches this off.
            context = ssl.create_default_context(cafile=query.get("cafile"))
            if "certfile" in query:
                context.load_cert_chain(query["certfile"], query.get("keyfile"))
        except OSError as error:  # ssl.SSLError is an OSError too
            raise ConfError(f"CRON_BROKER_URL: the certificate files cannot be used: {error}") from None
        return pika.SSLOptions(context, parts.hostname)
