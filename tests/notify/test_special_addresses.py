"""Addresses that are internal by their use, not by their name, are called only if the setting names them."""

from __future__ import annotations

from typing import Any

import pytest
import requests
from requests_hardened.ip_filter import InvalidIPAddress

from scheduling.notify import guarded_http
from scheduling.notify.connection_deadline import ConnectionDeadline
from scheduling.notify.guarded_http import InternalAddress, check_host
from tests.notify.look_ups import resolve

SPECIAL = ["fec0::1", "::127.0.0.1", "::ffff:0:127.0.0.1", "::", "4000::1", "240.0.0.1", "0.0.0.0"]  # noqa: S104


def written(address: str) -> str:
    return f"[{address}]" if ":" in address else address


def connection_of(url: str) -> Any:
    """Ask the filter to which address a request to this URL would go."""
    session = guarded_http._session(url, ConnectionDeadline(1))
    request = requests.Request("GET", url).prepare()
    return session.get_adapter(url).build_connection_pool_key_attributes(request, True)[0]["host"]


@pytest.mark.parametrize("address", SPECIAL)
def test_it_is_refused_in_a_form_and_when_it_is_called(address: str) -> None:
    url = f"http://{written(address)}/"
    with pytest.raises(InternalAddress, match="CRON_INTERNAL_HOSTS"):
        check_host(url)
    with pytest.raises(InvalidIPAddress):
        connection_of(url)


@pytest.mark.parametrize("address", SPECIAL)
def test_a_name_that_leads_to_it_is_refused(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    resolve(monkeypatch, [address])
    with pytest.raises(InvalidIPAddress):
        connection_of("https://example.com/")


@pytest.mark.parametrize("address", ["fec0::1", "::127.0.0.1"])
def test_the_setting_allows_it(address: str, settings: Any) -> None:
    settings.CRON_INTERNAL_HOSTS = address
    url = f"http://{written(address)}/"
    check_host(url)
    assert connection_of(url).strip("[]") == address


@pytest.mark.parametrize("address", ["93.184.215.14", "2606:4700::1111", "2a00:1450:4001::200e"])
def test_a_public_address_is_called(address: str) -> None:
    url = f"http://{written(address)}/"
    check_host(url)
    assert connection_of(url) == written(address)
