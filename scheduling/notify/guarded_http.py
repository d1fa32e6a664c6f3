"""Sends HTTP requests that cannot reach the machines of the internal network.

An operator chooses the address, but the request comes from inside. So every address that a host name resolves to must
be public, unless the setting CRON_INTERNAL_HOSTS names the host. Redirects are not followed: they would lead elsewhere.
"""

from __future__ import annotations

import socket
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any
from urllib.parse import urlsplit

from django.utils import timezone as clock

from scheduling.conf import get_conf
from scheduling.core import delivery_sentences as say
from scheduling.core.internal_hosts import is_special, may_be_internal
from scheduling.core.retry_after import retry_after
from scheduling.notify.connection_deadline import ConnectionDeadline
from scheduling.notify.quiet_log import quiet

BODY_LENGTH = 64 * 1024
"""How many bytes of an answer are read."""

CHUNK = 4 * 1024

LATER = frozenset({408, 425, 429, *range(500, 600)})
"""The answers after which a later try can work (RFC 9110, 15.5 and 15.6; RFC 6585). Proxies have own answers 5xx."""

ANSWER_LENGTH = 300
"""A sentence repeats so many characters of an answer."""

IS_INSTALLED = find_spec("requests_hardened") is not None


class Forbidden(Exception):
    """The address must not be called. The error's text is a sentence."""


class InternalAddress(Forbidden):
    """The host has an address of the internal network."""


class NoAnswer(Exception):
    """The server cannot be reached, or did not answer in time. A later try can work."""


class NotConnected(NoAnswer):
    """The server cannot be reached, so it did not get the request."""


@dataclass(frozen=True)
class Answer:
    """The answer of a server.

    Args:
        body: the first bytes of the body, at most BODY_LENGTH.
        whole: whether the body has no more bytes.
    """

    status: int
    body: bytes = b""
    whole: bool = True
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def retry_after(self) -> float | None:
        """After how many seconds the server wants the next try; None if it does not say so."""
        return retry_after(self.headers.get("Retry-After", ""), clock.now())


def call(method: str, url: str, headers: Mapping[str, str], body: bytes, seconds: float) -> Answer:
    """Send one request and read the answer.

    Args:
        seconds: the time limit for everything, from the look-up of the name to the last byte that is read.

    Raises:
        Forbidden: the scheme is not http or https, or the host has an internal address.
        NoAnswer: see there.
    """
    return send_request(method, url, seconds, headers=dict(headers), data=body or None)


def send_request(method: str, url: str, seconds: float, *, needs_body: bool = True, **content: Any) -> Answer:
    """Send one request and read the answer, as `call` does. The log gets no line about it: the URL may be a secret.

    Args:
        needs_body: whether an answer without its whole body is none. Otherwise the status is the answer: the body of a
            success is not read, and another one is read as far as it comes.
        content: the content of the request, named as the library requests names it: `headers`, `params`, `data`,
            `json`, `auth`.
    """
    import requests
    from requests_hardened.ip_filter import InvalidIPAddress
    from urllib3.exceptions import HTTPError

    options = {"timeout": (seconds, seconds), "stream": True, "allow_redirects": False}
    try:
        # The answer is closed, too: the session forgets the connection of an answer that is not read to its end.
        with (
            quiet(),
            ConnectionDeadline(seconds) as deadline,
            _session(url, deadline) as session,
            session.request(method, url, **content, **options) as answer,
        ):
            found, whole = _read(answer, deadline, needs_body)
            return Answer(answer.status_code, found, whole, answer.headers)
    except InvalidIPAddress as error:
        raise InternalAddress(internal_sentence(urlsplit(url).hostname, error)) from None
    except (requests.exceptions.InvalidURL, requests.exceptions.InvalidSchema, UnicodeError) as error:
        raise Forbidden(say.NOT_CALLABLE.format(error=error)) from None
    except (requests.RequestException, HTTPError, OSError) as error:
        kind = NotConnected if _is_before_request(error) else NoAnswer
        raise kind(f"{type(error).__name__}: {error}") from error


def internal_sentence(host: object, address: object) -> str:
    """Says that a host has an internal address."""
    return say.INTERNAL.format(host=host, address=address)


def check_host(url: str) -> None:
    """Refuse a URL whose host is an internal address as it stands, without a look-up of names.

    Raises:
        Forbidden: the URL names no host. InternalAddress: the host is internal.
    """
    from requests_hardened.ip_filter import InvalidIPAddress, get_ip_address

    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        raise Forbidden(say.NO_HOST.format()) from None
    if not host:
        raise Forbidden(say.NO_HOST.format())
    if may_be_internal(get_conf().internal_hosts, parts.scheme, host, port):
        return
    name = host.rstrip(".")
    if name == "localhost" or name.endswith(".localhost"):
        raise InternalAddress(internal_sentence(host, "127.0.0.1"))
    try:
        # The system reads numbers such as 127.1 and 0x7f000001 as addresses, too.
        socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST)
    except (OSError, UnicodeError):
        return  # a name is looked up when it is called
    try:
        address, _port = get_ip_address(host, port, allow_loopback=False)
        if is_special(address):
            raise InvalidIPAddress(address)
    except InvalidIPAddress as error:
        raise InternalAddress(internal_sentence(host, error)) from None


def _is_before_request(error: Exception) -> bool:
    """Whether the error came before the server could get the request."""
    from requests.exceptions import ConnectTimeout, InvalidHeader, SSLError
    from urllib3.exceptions import ConnectTimeoutError, NewConnectionError

    reason = getattr(error.args[0], "reason", None) if error.args else None
    look_up = isinstance(error.__cause__, socket.gaierror)
    early = isinstance(error, ConnectTimeout | SSLError | InvalidHeader)
    return early or look_up or isinstance(reason, NewConnectionError | ConnectTimeoutError)


def _session(url: str, deadline: ConnectionDeadline) -> Any:
    """A session for this address. The environment's proxies are ignored: a proxy would look up the name itself."""
    import requests

    from scheduling.notify.address_filter import AddressFilter

    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname)
    except ValueError as error:
        raise Forbidden(say.NOT_CALLABLE.format(error=error)) from None
    if not usable:
        raise Forbidden(say.NO_SCHEME.format())
    session: Any = requests.Session()
    for scheme in ("http", "https"):
        session.mount(f"{scheme}://", AddressFilter(scheme, get_conf().internal_hosts, deadline.watch))
    session.trust_env = False
    # Without redirects, requests still reads the whole body of a redirect, to prepare the next request.
    session.resolve_redirects = lambda *_arguments, **_options: iter(())
    return session


def _read(answer: Any, deadline: ConnectionDeadline, needs_body: bool) -> tuple[bytes, bool]:
    """The first bytes of the body, and whether these are all.

    Raises:
        NoAnswer, OSError, urllib3.exceptions.HTTPError: the body cannot be read to its end, and it is needed.
    """
    from urllib3.exceptions import HTTPError

    found = bytearray()
    if not needs_body and 200 <= answer.status_code <= 299:
        return b"", False
    try:
        # `iter_content` would wait until a chunk is full.
        while chunk := answer.raw.read1(CHUNK, decode_content=True):
            found += chunk
            if len(found) > BODY_LENGTH:
                return bytes(found[:BODY_LENGTH]), False
    except (HTTPError, OSError):
        if needs_body:
            raise
        return bytes(found), False
    if deadline.is_over and needs_body:  # then the end of the body is the end of our patience
        raise NoAnswer("The server did not send its whole answer in time.")
    return bytes(found), not deadline.is_over
