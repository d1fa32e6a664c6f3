"""Hostile addresses of chats: true ones with changed parts, and texts of any kind."""

from __future__ import annotations

from random import Random

from tests.hostile.atoms import TEXTS, random_text
from tests.notify.chat_addresses import ADDRESSES

HOSTS = (
    "localhost", "LOCALHOST.", "x.localhost", "127.0.0.1", "127.1", "0", "0x7f000001", "2130706433", "017700000001",
    "[::1]", "[::]", "[::ffff:127.0.0.1]", "[fe80::1%25lo]", "[::1", "10.0.0.1", "192.168.0.1", "169.254.169.254",
    "100.64.0.1", "[fd00::1]", "127.0.0.1:6379", "127.0.0.1\\@chat.example.com", "chat.example.com\\@127.0.0.1",
    "user@127.0.0.1", "chat.example.com#@127.0.0.1", "127.0.0.1%23@chat.example.com", "127.0.0.1%2f@chat.example.com",
    "①②⑦.⓪.⓪.①", "127。0。0。1", "localhost%00.example.com", "localhost%2eexample", "-", ".", "a" * 300, "a..b",
    "127.0.0.1:99999", "127.0.0.1:x", "internal.example.com",
)  # fmt: skip

SCHEMES = (
    *ADDRESSES, "syslog", "dbus", "gnome", "macosx", "windows", "exec", "file", "apprise", "mailto", "matrix", "http",
    "https", "JSON", "json ", " json", "json:", "jso\u0130n", "xml", "mqtt", "python", "", "\x00",
)  # fmt: skip

OPTIONS = (
    "verify=no", "rto=99999", "cto=99999", "redirect=yes", "attach=file:///etc/passwd", "attach=http://127.0.0.1/",
    "template=/etc/passwd", "format=html", "overflow=split", "store=yes", "retry=99", "wait=99", "+Host=127.0.0.1",
    "+X=a%0d%0aHost:%20b", "-url=http://127.0.0.1", ":url=http://127.0.0.1", "method=DELETE", "method=CONNECT",
    "mode=bot", "mode=w", "user=x", "pass=x", "port=22", "host=127.0.0.1", "icon_url=file:///etc/passwd",
    "url_prefix=//127.0.0.1", "url_prefix=@127.0.0.1", "token=@127.0.0.1/", "to=@127.0.0.1", "click=http://127.0.0.1",
    "ver=../..", "id=@127.0.0.1", "workspace=@127.0.0.1/", "region=127.0.0.1", "avatar_url=http://127.0.0.1/",
)  # fmt: skip

PATHS = ("..", "../../x", "#room", "@user", "//127.0.0.1", "%2f%2f127.0.0.1", "\\", "a,b", "a;b", "%00")

VARIABLES = (
    "${CRON_CHAT_TEAM}",
    "${SECRET_KEY}",
    "${CRON_CHAT_TEAM}x",
    "${}",
    "$(ls)",
    "`ls`",
    "${CRON_CHAT_SYSLOG}",
    "${CRON_WEBHOOK_INSIDE}",
)


def chat_address(pick: Random) -> str:
    """Return an address that is wrong in one to three places, or a text that is no address."""
    if pick.random() < 0.1:
        return pick.choice([*TEXTS, *VARIABLES, random_text(pick)])
    address = pick.choice(list(ADDRESSES.values()))
    for _ in range(pick.choice((1, 1, 2, 3))):
        address = _changed(pick, address)
    return address


def _changed(pick: Random, address: str) -> str:
    scheme, _mark, rest = address.partition("://")
    match pick.randrange(6):
        case 0:
            return f"{pick.choice(SCHEMES)}://{rest}"
        case 1:
            before, at, after = rest.rpartition("@") if pick.random() < 0.5 else ("", "", rest)
            path = after.partition("/")[2]
            return f"{scheme}://{before}{at}{pick.choice(HOSTS)}/{path}"
        case 2:
            return f"{address}{'&' if '?' in address else '?'}{pick.choice(OPTIONS)}"
        case 3:
            return f"{address}/{pick.choice(PATHS)}"
        case 4:
            place = pick.randrange(len(address) + 1)
            return address[:place] + pick.choice("/@:?&#%\\[]{}$;, \n\t\x00é") + address[place + pick.randrange(2) :]
        case _:
            parts = rest.split("/")
            parts[pick.randrange(len(parts))] = pick.choice(("", "x", "1", "@127.0.0.1", "a" * 200, random_text(pick)))
            return f"{scheme}://{'/'.join(parts)}"
