"""An address that no message can be sent to is refused with a sentence, which has no part of the address in it."""

from __future__ import annotations

import socket
from typing import Any

import pytest
from django.utils import translation

from scheduling.core.chat_services import SCHEMES, shown, variable_of
from scheduling.notify import chat
from scheduling.notify.chat import check_address
from scheduling.notify.chat_address import ChatAddressError
from tests.notify.chat_addresses import ADDRESSES

SECRET = "hunter2"

LOCAL = (
    "syslog", "dbus", "kde", "qt", "glib", "gnome", "macosx", "windows", "growl", "blink1", "exec", "file", "apprise",
    "apprises", "mqtt", "mqtts", "irc", "ircs", "xmpp", "amqp", "rsyslog", "smpp", "kodi", "xbmc", "home", "hassio",
    "matrix", "matrixs", "http", "ftp", "unix", "memory", "tests", "xml", "gitter", "python",
)  # fmt: skip


@pytest.fixture(autouse=True)
def _no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fail if the check connects to something or looks up a name."""

    def connect(*_arguments: Any) -> None:
        raise AssertionError("a connection")

    real = socket.getaddrinfo

    def look_up(*arguments: Any, **options: Any) -> Any:
        assert options.get("flags", 0) & socket.AI_NUMERICHOST or str(arguments[0])[:1].isdigit() or ":" in arguments[0]
        return real(*arguments, **options)

    monkeypatch.setattr(socket.socket, "connect", connect)
    monkeypatch.setattr(socket, "getaddrinfo", look_up)


def refusal(address: str) -> str:
    """Return the sentence with which an address is refused."""
    with pytest.raises(ChatAddressError) as refused:
        check_address(address)
    said = str(refused.value)
    assert said.endswith((".", "notify]'"))
    assert SECRET not in said
    return said


@pytest.mark.parametrize("scheme", SCHEMES)
def test_an_address_of_each_service_can_be_used(scheme: str) -> None:
    check_address(ADDRESSES[scheme])
    check_address(f"  {ADDRESSES[scheme]} ")


@pytest.mark.parametrize("scheme", LOCAL)
@pytest.mark.parametrize("rest", ["", "localhost", f"user:{SECRET}@host/path"])
def test_services_outside_the_list_are_refused(scheme: str, rest: str) -> None:
    assert "must begin with one of: slack://, discord://, " in refusal(f"{scheme}://{rest}")


@pytest.mark.parametrize("scheme", ["mailto", "mailtos", "MAILTO"])
def test_an_e_mail_address_belongs_to_another_field(scheme: str) -> None:
    assert "Choose the kind “e-mail addresses”" in refusal(f"{scheme}://user:{SECRET}@example.com")


@pytest.mark.parametrize(
    "host",
    ["localhost", "LOCALHOST", "a.localhost", "127.0.0.1", "127.0.0.1:8000", "[::1]", "[::1]:80", "10.0.0.1", "0.0.0.0",  # noqa: S104
     "192.168.1.1", "169.254.169.254", "[::ffff:127.0.0.1]", "[fd00::1]", "100.64.0.1", "[::]"],
)  # fmt: skip
@pytest.mark.parametrize(
    "address",
    ["json://{}", "jsons://user:hunter2@{}/x", "forms://{}/", "mmost://{}/3ccdd113474722377935511fc85d3dd4",
     "rockets://user:hunter2@{}/room", "ntfys://{}/topic", "gotify://{}/AbCdEfGhIjKlMnO", "nctalks://u:p@{}/room",
     "workflows://{}/643e69f83c8944/hunter2"],
)  # fmt: skip
def test_a_host_of_the_internal_network_is_refused(address: str, host: str) -> None:
    said = refusal(address.format(host))
    assert "CRON_INTERNAL_HOSTS" in said or "not a complete address" in said


def test_a_named_host_may_be_internal(settings: Any) -> None:
    settings.CRON_INTERNAL_HOSTS = "localhost, 10.0.0.1:8065"
    check_address("json://localhost/hook")
    check_address("mmost://10.0.0.1:8065/3ccdd113474722377935511fc85d3dd4")
    refusal("mmost://10.0.0.1:8066/3ccdd113474722377935511fc85d3dd4")


@pytest.mark.parametrize("scheme", ["slack", "discord", "json", "ntfys", "tgram", "workflows"])
@pytest.mark.parametrize(
    "option",
    ["verify=no", "VERIFY=no", "rto=9999", "cto=9999", "redirect=yes", "retry=9", "wait=60", "template=/etc/passwd",
     "attach=file:///etc/passwd", "attach=http://localhost/", "overflow=split", "format=html", "store=yes", "tz=x",
     "tag=x", "optional=yes", "user=x", "pass=hunter2", "port=22", "%76erify=no", "emojis=yes", "hunter2", "=hunter2"],
)  # fmt: skip
def test_an_option_that_is_not_in_the_list_is_refused(scheme: str, option: str) -> None:
    joint = "&" if "?" in ADDRESSES[scheme] else "?"
    assert "has an option that is not possible here" in refusal(f"{ADDRESSES[scheme]}{joint}{option}")
    assert "has an option that is not possible here" in refusal(f"{ADDRESSES[scheme]}{joint}a=1;{option}")


@pytest.mark.parametrize(
    "address",
    ["", " ", "slack", "://", "slack://", f"slack://{SECRET}", f"{SECRET}", "json://", "json://?a=b",
     f"discord://{SECRET}", "tgram://1/2", f"json://a b/{SECRET}", "json://é.example/",
     f"json://a/\x00{SECRET}", "json://[::1", "json://a:99999999/", f"json://{'a' * 3000}", f"x json://a/{SECRET}",
     f"json://a.example/,json://b.example/{SECRET}x y", "https://example.com/hook", f"https://{SECRET}.example/"],
)  # fmt: skip
def test_a_text_that_is_no_address_is_refused(address: str) -> None:
    refusal(address)


@pytest.mark.parametrize(
    "address",
    ["slack://T1JJ3T3L2/A1BRTD4JD/TIiajkdnlazkcOXrIdevi7Q/#one/#two", "ntfys://ntfy.example.com/one/two",
     "tgram://123456789:AAAABBBBCCCCDDDDEEEEFFFFGGGGHHHHIII/1/2/"],
)  # fmt: skip
def test_an_address_has_one_recipient(address: str) -> None:
    assert refusal(address) == "The address names 2 recipients. Make a channel for each of them."


@pytest.mark.parametrize(
    "text",
    ["${SECRET_KEY}", "${DATABASE_URL}", "$CRON_CHAT_TEAM", "${CRON_CHAT_}", "${CRON_CHAT_TEAM}x", "${cron_chat_team}",
     "${CRON_CHAT_TEAM}${CRON_CHAT_TEAM}", "${CRON_CHAT_TEAM:-json://localhost}", "$"],
)  # fmt: skip
def test_no_other_variable_of_the_environment_is_read(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CRON_CHAT_TEAM", ADDRESSES["slack"])
    monkeypatch.setenv("SECRET_KEY", ADDRESSES["slack"])
    monkeypatch.setenv("DATABASE_URL", ADDRESSES["slack"])
    assert "must look like ${CRON_CHAT_TEAM}" in refusal(text)
    assert variable_of(text) == ""


def test_a_variable_inside_an_address_is_not_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CRON_CHAT_TEAM", SECRET)
    plugin = "json://evil.example/${CRON_CHAT_TEAM}"
    check_address(plugin)
    assert SECRET not in shown(plugin)


def test_the_value_of_a_variable_is_checked_if_it_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    check_address("${CRON_CHAT_TEAM}")  # a consumer may have it, although the web process has not
    monkeypatch.setenv("CRON_CHAT_TEAM", f"syslog://{SECRET}")
    refusal("${CRON_CHAT_TEAM}")
    assert shown("${CRON_CHAT_TEAM}") == "${CRON_CHAT_TEAM}"


def test_the_setting_chooses_the_services(settings: Any) -> None:
    settings.CRON_CHAT_SCHEMES = "slack, Gotifys://"
    check_address(ADDRESSES["slack"])
    check_address(ADDRESSES["gotifys"])
    assert refusal(ADDRESSES["gotify"]).endswith("must begin with one of: slack://, gotifys://.")
    refusal("https://discord.com/api/webhooks/4174216298/JHMHI8qBe7bk2ZwO5U711o3dV")


def test_without_the_extra_the_sentence_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chat, "IS_INSTALLED", False)
    assert "pip install 'cronsite[notify]'" in refusal(ADDRESSES["slack"])


def test_the_sentence_is_in_the_language_of_the_request(monkeypatch: pytest.MonkeyPatch) -> None:
    from scheduling.notify import chat_address

    monkeypatch.setattr(chat_address, "_", lambda text: f"{translation.get_language()}: {text}")
    with translation.override("fr"):
        assert refusal("syslog://").startswith("fr: ")


def test_what_is_shown_has_no_part_of_a_secret() -> None:
    texts = [f"slack://{SECRET}", SECRET, f"{SECRET}://x", f"http://{SECRET}", "", "slack:", f"${{{SECRET}}}"]
    assert SECRET not in "".join(map(shown, texts))
