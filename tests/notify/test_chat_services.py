"""Each service of apprise that a channel can name sends through the guard, and through nothing else."""

from __future__ import annotations

import ast
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from scheduling.core.chat_services import SCHEMES, SERVICES, ChatService, shown
from scheduling.notify import chat, chat_http
from scheduling.notify.chat_address import ChatAddressError
from scheduling.notify.chat_plugin import plugin_of
from scheduling.notify.delivery import Letter
from scheduling.notify.guarded_http import Answer
from tests.notify.chat_addresses import ADDRESSES, HOSTS

REQUESTS = {"codes", "RequestException", "request", "get", "post", "put", "patch", "delete"}

NETWORK = {
    "asyncio", "http", "paho", "slixmpp", "smtplib", "socket", "ssl", "subprocess", "urllib.request", "urllib3",
    "websocket", "websockets", "xmlrpc", "aiohttp", "httpx", "ctypes", "multiprocessing", "ftplib",
}  # fmt: skip
"""Modules that connect to something, or start a program."""

HARMLESS = {
    "apprise_attachment", "attachment.base", "attachment.memory", "base", "common", "conversion", "exception",
    "locale", "url", "utils.parse", "utils.sanitize", "utils.templates",
}  # fmt: skip
"""The modules of apprise that the plugins import. None of them connects to anything without an attachment."""


def source(service: ChatService) -> ast.Module:
    spec = find_spec(f"apprise.plugins.{service.plugin.partition('.')[0]}")
    assert spec is not None
    assert spec.origin is not None
    return ast.parse(Path(spec.origin).read_text())


@pytest.mark.parametrize("service", SERVICES, ids=lambda service: service.name)
def test_the_plugin_uses_requests_and_nothing_else_of_the_network(service: ChatService) -> None:
    tree = source(service)
    used = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute) and is_requests(node.value)}
    assert used <= REQUESTS
    bare = [node for node in ast.walk(tree) if is_requests(node)]
    named = [node for node in ast.walk(tree) if isinstance(node, ast.Attribute) and is_requests(node.value)]
    assert len(bare) == len(named)  # the module itself is handed to no other function
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)]
    for node in imports:
        if isinstance(node, ast.Import):
            names = {alias.name for alias in node.names}
            assert not {name for name in names if name in NETWORK or name.partition(".")[0] in NETWORK}
            assert all(alias.asname is None for alias in node.names if alias.name == "requests")
        elif node.level:
            assert (node.module or "exception") in HARMLESS, node.module
        else:
            assert node.module not in NETWORK
            assert str(node.module).partition(".")[0] not in {*NETWORK, "requests"}
    called = {node.func.id for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)}
    assert not called & {"exec", "eval", "__import__", "compile", "import_module"}


def is_requests(node: ast.AST) -> bool:
    return isinstance(node, ast.Name) and node.id == "requests"


@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_message_goes_to_the_host_of_the_service(scheme: str, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[tuple[str, str, dict[str, Any]]] = []

    def answer(method: str, url: str, _seconds: float, **content: Any) -> Answer:
        calls.append((method, url, content))
        login = b'{"status": "success", "ok": true, "data": {"authToken": "t", "userId": "u"}, "requestId": "r"}'
        return Answer(200, b"ok" if scheme == "slack" else login)

    monkeypatch.setattr(chat_http, "send_request", answer)
    chat.check_address(ADDRESSES[scheme])
    assert calls == []
    chat.send(ADDRESSES[scheme], Letter("Standup", "at ten and later", html="<b>at ten</b>"))
    service = SCHEMES[scheme].schemes[0]
    assert {urlsplit(url).hostname for _method, url, _content in calls} == {HOSTS.get(service, "chat.example.com")}
    secure = scheme not in ("mmost", "rocket", "nctalk", "ntfy", "gotify", "json", "form")
    assert {urlsplit(url).scheme for _method, url, _content in calls} == {"https" if secure else "http"}
    said = str([content for _method, _url, content in calls])
    assert "Standup" in said
    assert "at ten" in said
    assert "<b>at ten" not in said
    assert "github.com" not in said  # no picture of apprise
    assert all("verify" not in content for _method, _url, content in calls)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_what_a_page_shows_is_the_scheme(scheme: str) -> None:
    assert shown(ADDRESSES[scheme]) == f"{scheme}://…"


@pytest.mark.parametrize(
    ("address", "host"),
    [
        ("https://hooks.slack.com/services/T1JJ3T3L2/A1BRTD4JD/TIiajkdnlazkcOXrIdevi7Q", "hooks.slack.com"),
        ("https://discord.com/api/webhooks/4174216298/JHMHI8qBe7bk2ZwO5U711o3dV", "discord.com"),
        ("https://chat.googleapis.com/v1/spaces/space/messages?key=key&token=token", "chat.googleapis.com"),
        (
            "https://prod-15.uksouth.logic.azure.com:443/workflows/3XXX5/triggers/manual/paths/invoke"
            "?api-version=2016-06-01&sp=%2Ftriggers%2Fmanual%2Frun&sv=1.0&sig=iXXXU",
            "prod-15.uksouth.logic.azure.com",
        ),
        ("https://mattermost.example.com/hooks/3ccdd113474722377935511fc85d3dd4", "mattermost.example.com"),
        ("https://chat.example.com:8443/team/hooks/3ccdd113474722377935511fc8?channel=a", "chat.example.com"),
        (f"https://webexapis.com/v1/webhooks/incoming/{'ab12' * 20}/", "api.ciscospark.com"),
    ],
)
def test_an_address_is_taken_as_the_service_shows_it(address: str, host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    urls: list[str] = []

    def answer(_method: str, url: str, _seconds: float, **_content: Any) -> Answer:
        urls.append(url)
        return Answer(200, b"ok")

    monkeypatch.setattr(chat_http, "send_request", answer)
    chat.check_address(address)
    chat.send(address, Letter("subject", "text"))
    assert {urlsplit(url).hostname for url in urls} == {host}


def test_apprise_itself_is_left_alone() -> None:
    """A project can use apprise for purposes of its own, with its own `requests`."""
    import requests

    plugin, _service = plugin_of(ADDRESSES["slack"], tuple(SCHEMES))
    from apprise.plugins.slack import NotifySlack

    assert sys.modules["apprise.plugins.slack"].requests is requests
    assert not isinstance(plugin, NotifySlack)


def test_a_plugin_that_no_longer_uses_requests_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    strange = ChatService("Strange", "base.NotifyBase", ("strange",))
    monkeypatch.setitem(SCHEMES, "strange", strange)
    with pytest.raises(ChatAddressError, match="sends to Strange in an unknown way"):
        plugin_of("strange://host", ("strange",))
