"""A person at the pages of a host: follows links, and fills in and sends forms, over HTTP."""

from __future__ import annotations

import http.cookiejar
import urllib.parse
import urllib.request
from urllib.error import HTTPError

from bs4 import BeautifulSoup, Tag


class Page:
    """One answer: its address after redirects, and its content."""

    def __init__(self, address: str, text: str) -> None:
        self.address, self.text = address, text
        self.soup = BeautifulSoup(text, "html.parser")

    @property
    def path(self) -> str:
        """The path of the address."""
        return urllib.parse.urlsplit(self.address).path

    def link(self, ending: str = "", text: str = "") -> str:
        """The target of the first link in the page's content with this text, or whose path ends so."""
        for link in self.soup.select("#content a[href]"):
            target = str(link["href"])
            if urllib.parse.urlsplit(target).path.endswith(ending) and text in link.get_text():
                return target
        raise AssertionError(f"no link {ending or text} on {self.address}:\n{self.said()}")

    def said(self) -> str:
        """The text of the page's content."""
        content = self.soup.select_one("#container") or self.soup
        return content.get_text(" ", strip=True)

    def form(self) -> dict[str, str]:
        """What a browser would send of the form in the page's content, without its buttons."""
        form = self.soup.select_one("#content form[method=post]")
        assert form is not None, f"no form on {self.address}:\n{self.said()}"
        values: dict[str, str] = {}
        for field in form.select("input[name], textarea[name], select[name]"):
            if (value := _value(field)) is not None:
                values[str(field["name"])] = value
        return values

    def choice(self, name: str, text: str) -> str:
        """What a browser sends if a person chooses the option with this text. In a field without options, the text."""
        options = self.soup.select(f'#content select[name="{name}"] option')
        return next((str(option["value"]) for option in options if option.get_text(strip=True) == text), text)


def _value(field: Tag) -> str | None:
    kind = field.get("type")
    if kind in {"submit", "button", "file"} or (kind in {"checkbox", "radio"} and not field.has_attr("checked")):
        return None
    if field.name == "textarea":
        return field.get_text().removeprefix("\n")
    if field.name == "select":
        chosen = field.select_one("option[selected]") or field.select_one("option")
        return str(chosen.get("value", "")) if chosen else None
    return str(field.get("value", "on" if kind == "checkbox" else ""))


class Visitor:
    """A browser without scripts. An answer of 400 or more fails the test.

    Args:
        admin: where the project has the admin. Paths without a slash at their beginning start there.
    """

    def __init__(self, port: int, admin: str = "/admin/") -> None:
        self.address = f"http://127.0.0.1:{port}{admin}"
        self._open = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(http.cookiejar.CookieJar())).open

    def get(self, path: str) -> Page:
        """Open a path of the admin, or a link of a page."""
        return self._answer(urllib.parse.urljoin(self.address, path), None)

    def send(self, page: Page, **values: str) -> Page:
        """Send the page's form with these values instead of its own, and return the page that follows.

        Args:
            values: texts by the names of fields; in a field with options, the text of an option.
        """
        chosen = {name: page.choice(name, text) for name, text in values.items()}
        data = urllib.parse.urlencode({**page.form(), **chosen}).encode()
        return self._answer(page.address, data)

    def sign_in(self, user: str, password: str) -> Page:
        """Sign in, and return the page that follows."""
        page = self.get("")
        return self.send(page, username=user, password=password)

    def _answer(self, address: str, data: bytes | None) -> Page:
        try:
            with self._open(address, data, timeout=60) as response:
                return Page(response.url, response.read().decode())
        except HTTPError as error:
            said = BeautifulSoup(error.read().decode(errors="replace"), "html.parser").get_text(" ", strip=True)
            raise AssertionError(f"{address} answers {error.code}: {said[:3000]}") from None
