"""With an `amqps` URL, the transport always verifies the certificate of the server."""

from __future__ import annotations

import shutil
import ssl
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from scheduling.broker import BrokerUnavailable
from scheduling.broker.rabbitmq import RabbitBroker
from tests.contract.proxy import Proxy
from tests.contract.server import Server

pytestmark = [pytest.mark.any_database, pytest.mark.django_db]


@pytest.fixture
def authority(tmp_path: Path) -> Path:
    """Provide a folder with a certificate authority and a certificate for `localhost`."""
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not installed")

    def openssl(*arguments: str) -> None:
        subprocess.run(["openssl", *arguments], cwd=tmp_path, check=True, capture_output=True)

    openssl("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", "ca.key", "-out", "ca.pem", "-subj", "/CN=ca")
    openssl("req", "-newkey", "rsa:2048", "-nodes", "-keyout", "own.key", "-out", "own.csr", "-subj", "/CN=localhost")
    (tmp_path / "names").write_text("subjectAltName=DNS:localhost")
    signed_by = ["-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-extfile", "names"]
    openssl("x509", "-req", "-in", "own.csr", "-out", "own.pem", "-days", "2", *signed_by)
    return tmp_path


@pytest.fixture
def tls(server: Server, authority: Path) -> Iterator[Proxy]:
    """Provide a proxy that clients reach only with TLS."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(authority / "own.pem", authority / "own.key")
    proxy = Proxy(*server.address, tls=context)
    yield proxy
    proxy.close()


def url(server: Server, port: int, host: str, ca: str = "") -> str:
    return server.url(port).replace("amqp://", "amqps://", 1).replace("127.0.0.1", host, 1) + ca


def test_a_trusted_server_is_accepted(server: Server, tls: Proxy, authority: Path) -> None:
    broker = RabbitBroker(url(server, tls.port, "localhost", f"&cafile={authority / 'ca.pem'}"))
    try:
        assert broker.counts().failed == 0
    finally:
        broker.close()


@pytest.mark.parametrize(("host", "with_ca"), [("localhost", False), ("127.0.0.1", True)])
def test_an_unknown_authority_or_another_name_is_refused(
    server: Server, tls: Proxy, authority: Path, host: str, with_ca: bool
) -> None:
    ca = f"&cafile={authority / 'ca.pem'}" if with_ca else ""
    broker = RabbitBroker(url(server, tls.port, host, ca))
    try:
        with pytest.raises(BrokerUnavailable, match=r"certificate .* is not accepted"):
            broker.counts()
    finally:
        broker.close()
