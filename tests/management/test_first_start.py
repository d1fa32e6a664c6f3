"""The tests check what `up` does before it starts processes: secret key, first user, port and welcome text."""
# ruff: noqa: S104 (the addresses are only parsed, not bound)

from __future__ import annotations

import io
import os
import socket
import stat
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from django.contrib.admin import AdminSite
from django.contrib.auth import get_user_model
from django.core.management.base import CommandError

from scheduling.management import command_line, first_start
from scheduling.management.first_start import Account, ensure_admin, ensure_data_dir, ensure_secret_key
from scheduling.management.log_prefix import Prefixer
from scheduling.management.welcome import Welcome


class TestSecretKey:
    @pytest.fixture(autouse=True)
    def settings(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
        """Replace Django's settings with a plain object, because Django refuses to read an empty SECRET_KEY."""
        settings = SimpleNamespace(SECRET_KEY="", DATA_DIR=tmp_path / "data")
        monkeypatch.setattr(first_start, "settings", settings)
        monkeypatch.setenv("SECRET_KEY", "")
        return settings

    def test_the_key_is_made_once_and_is_private(self, settings: SimpleNamespace) -> None:
        path = ensure_secret_key()
        assert path == settings.DATA_DIR / "secret.key"
        key = path.read_text().strip()
        assert settings.SECRET_KEY == os.environ["SECRET_KEY"] == key
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
        assert [file.name for file in path.parent.iterdir()] == ["secret.key"]

        settings.SECRET_KEY = ""
        assert ensure_secret_key() is None
        assert key == settings.SECRET_KEY

    def test_an_empty_file_is_filled(self, settings: SimpleNamespace) -> None:
        settings.DATA_DIR.mkdir()
        (settings.DATA_DIR / "secret.key").touch()
        assert ensure_secret_key() is not None
        assert settings.SECRET_KEY

    @pytest.mark.parametrize(("owner", "mode"), [("this user", 0o700), ("another", 0o755)])
    def test_an_existing_folder_of_this_user_is_made_private(
        self, settings: SimpleNamespace, owner: str, mode: int, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        settings.DATA_DIR.mkdir()
        settings.DATA_DIR.chmod(0o755)
        if owner == "another":
            monkeypatch.setattr(first_start.os, "geteuid", lambda: settings.DATA_DIR.stat().st_uid + 1)
        ensure_data_dir()
        assert stat.S_IMODE(settings.DATA_DIR.stat().st_mode) == mode

    def test_a_key_that_is_set_is_kept(self, settings: SimpleNamespace) -> None:
        settings.SECRET_KEY = "set"
        assert ensure_secret_key() is None
        assert not settings.DATA_DIR.exists()

    def test_a_key_file_that_cannot_be_written_has_an_error_message(self, settings: SimpleNamespace) -> None:
        (settings.DATA_DIR / "secret.key").mkdir(parents=True)
        with pytest.raises(CommandError, match="or set SECRET_KEY"):
            ensure_secret_key()


@pytest.mark.django_db
class TestAdmin:
    def test_the_user_is_made_with_a_valid_password(self) -> None:
        account = ensure_admin()
        user = get_user_model().objects.get()
        assert (account.name, user.is_staff, user.is_superuser) == ("admin", True, True)
        assert user.check_password(account.password)
        assert ensure_admin() == Account("admin")

    def test_an_existing_superuser_keeps_the_password(self) -> None:
        get_user_model().objects.create_superuser("eve", password="eve's")
        assert ensure_admin() == Account("eve")

    def test_an_ordinary_user_named_admin_is_not_changed(self) -> None:
        get_user_model().objects.create_user("admin", password="mine")
        assert ensure_admin() == Account("")
        assert not get_user_model().objects.get().is_superuser

    def test_an_inactive_superuser_does_not_count(self) -> None:
        get_user_model().objects.create_superuser("gone", password="x", is_active=False)
        assert ensure_admin().name == "admin"


class TestCommandLine:
    def test_a_used_port_is_skipped(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as server:
            taken = server.getsockname()[1]
            chosen = command_line.free_port("127.0.0.1", taken)
        assert chosen is not None
        assert taken < chosen < taken + command_line.PORTS_TRIED

    def test_no_port_is_free_above_the_last(self) -> None:
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", 65_535))
                probe.listen()
            except OSError:
                pass  # another process uses the port, so the port is not free
            assert command_line.free_port("127.0.0.1", 65_535) is None

    def test_the_address_of_another_machine_is_an_error(self) -> None:
        with pytest.raises(OSError, match="assign"):
            command_line.free_port("192.0.2.1", 8000)

    @pytest.mark.parametrize(
        ("host", "typed"), [("0.0.0.0", "127.0.0.1:80"), ("::", "[::1]:80"), ("example.org", "example.org:80")]
    )
    def test_the_address_for_the_browser(self, host: str, typed: str) -> None:
        assert command_line.address_of(command_line.reachable_host(host), 80) == typed

    @pytest.mark.parametrize(
        ("name", "text", "arguments"),
        [
            ("manage.py", "", ["manage.py"]),
            ("cronsite", "#!/usr/bin/python\n", ["cronsite"]),
            ("cronsite.exe", "MZ", ["-P", "-m", "django"]),
        ],
    )
    def test_a_child_is_started_with_the_command_of_its_parent(
        self, name: str, text: str, arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        script = tmp_path / name
        script.write_text(text)
        monkeypatch.setattr(sys, "argv", [str(script), "up"])
        monkeypatch.setattr(sys.modules["__main__"], "__spec__", None)
        expected = [str(script)] if arguments == [name] else arguments
        assert command_line.command_line(from_shell=True) == [sys.executable, *expected]

    def test_a_child_is_started_with_django_if_other_code_called_up(self) -> None:
        assert command_line.command_line(from_shell=False) == [sys.executable, "-P", "-m", "django"]

    def test_a_page_without_a_server_has_no_answer(self) -> None:
        with socket.socket() as silent:
            silent.bind(("127.0.0.1", 0))
            assert command_line.answer("127.0.0.1", silent.getsockname()[1], "/") is None


class TestWelcome:
    def welcome(
        self, account: Account, status: int | None, host: str = "127.0.0.1", ready: bool = True
    ) -> tuple[Welcome, io.StringIO]:
        stream = io.StringIO()
        out = Prefixer(stream, [], own="up", colour=False)
        return Welcome(lambda: ready, out, host, 8000, account, look=lambda *_where: status), stream

    @pytest.mark.parametrize(
        ("status", "account", "expected"),
        [
            (
                200,
                Account("admin", "secret"),
                ["Everything is running.", "User      admin", "secret   (shown only now"],
            ),
            (302, Account("admin"), ["was shown once, at the first start", "changepassword admin"]),
            (200, Account(""), ["no account may sign in yet", "createsuperuser"]),
            (400, Account("admin"), ["ALLOWED_HOSTS"]),
            (500, Account("admin"), ["the site answers 500"]),
        ],
    )
    def test_text(self, status: int, account: Account, expected: list[str]) -> None:
        welcome, stream = self.welcome(account, status, host="0.0.0.0")
        assert welcome() is False
        welcome.leave()
        for part in ["http://127.0.0.1:8000/admin/", "Ctrl-C stops everything.", *expected]:
            assert part in stream.getvalue()
        assert stream.getvalue().count("secret") == (1 if account.password else 0)

    def test_another_shell_needs_the_demo(self, monkeypatch: pytest.MonkeyPatch) -> None:
        texts = {}
        for demo in ("1", "0"):
            for installed in ({"load_demo": "cronsite.demo"}, {}):  # a project of its own has no demo
                monkeypatch.setattr("scheduling.management.welcome.get_commands", lambda found=installed: found)
                monkeypatch.setenv("CRON_DEMO", demo)
                welcome, stream = self.welcome(Account("admin"), status=200)
                welcome()
                texts[demo, bool(installed)] = stream.getvalue()
        assert "CRON_DEMO=true " in texts.pop(("1", True))
        assert "CRON_DEMO" not in "".join(texts.values())

    def test_a_stock_admin_site_opens_with_the_dashboard(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("django.contrib.admin.site", AdminSite())
        welcome, stream = self.welcome(Account("admin"), status=200)
        welcome()
        assert "http://127.0.0.1:8000/admin/scheduling/dashboard/" in stream.getvalue()

    def test_the_password_is_shown_although_the_start_was_interrupted(self) -> None:
        welcome, stream = self.welcome(Account("admin", "secret"), status=None)
        assert welcome() is True
        welcome.leave()
        assert "secret" in stream.getvalue()

    def test_it_waits_for_every_child(self) -> None:
        welcome, stream = self.welcome(Account("admin"), status=200, ready=False)
        assert welcome() is True
        assert stream.getvalue() == ""
