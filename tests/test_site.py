"""The tests check the site: its command line, security headers, HTTPS settings, login and stored files."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from django.core.files.base import ContentFile
from django.core.files.storage import FileSystemStorage
from django.test import Client
from django.urls import reverse

from tests.factories import PASSWORD, UserFactory
from tests.support import ROOT

WITHOUT = """
import sys
sys.modules[{module!r}] = None  # importing it fails as if it were not installed
sys.argv = ["cronsite", "check"]
from cronsite.__main__ import main
sys.exit(main())
"""


@pytest.mark.parametrize("module", ["csp", "environ", "whitenoise"])
def test_the_error_message_names_the_missing_extra(module: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT.format(module=module)], cwd=ROOT, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 1
    assert "pip install 'cronsite[site]'" in done.stderr
    assert "Traceback" not in done.stderr


LOADED = """
import os, sys
os.environ["DJANGO_SETTINGS_MODULE"] = "tests.settings"
import django
from django.core.management import call_command, load_command_class
django.setup()
command = load_command_class("scheduling", {command!r})
command.check(tags=command.requires_system_checks)
print("processes:", sorted(name for name in sys.modules if name in {names!r}))
call_command("check")
print("checked:", sorted(name for name in sys.modules if name in {names!r}))
"""


@pytest.mark.parametrize("command", ["run_scheduler", "run_worker", "cleanup_executions"])
def test_a_process_without_requests_does_not_load_the_pages(command: str) -> None:
    names = ["cronsite.urls", "scheduling.admin.schedulers.admin"]
    code = LOADED.format(command=command, names=names)
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert done.stderr.replace("System check identified no issues (0 silenced).", "").strip() == ""
    assert "processes: []" in done.stdout
    # `manage.py check` loads the pages, so that Django checks them.
    assert f"checked: {names}" in done.stdout


@pytest.mark.parametrize("path", ["/admin/login/", "/admin/", "/nowhere/"])
def test_every_page_has_a_strict_content_security_policy(path: str, client: Client) -> None:
    header = client.get(path)["Content-Security-Policy"]
    policy = {name: sources for name, *sources in (directive.split() for directive in header.split(";"))}
    own = {"script-src", "style-src", "img-src", "font-src", "connect-src", "form-action"}
    none = {"default-src", "frame-ancestors", "base-uri", "object-src"}
    assert policy == {name: ["'self'"] for name in own} | {name: ["'none'"] for name in none}


@pytest.mark.parametrize(
    ("env", "hsts"),
    [
        ({}, "0 False False"),
        ({"HTTPS": "true"}, "31536000 False False"),
        ({"HTTPS": "true", "HSTS_INCLUDE_SUBDOMAINS": "true"}, "31536000 True False"),
        ({"HTTPS": "true", "HSTS_INCLUDE_SUBDOMAINS": "true", "HSTS_PRELOAD": "true"}, "31536000 True True"),
    ],
)
def test_hsts_covers_only_this_host_by_default(env: dict[str, str], hsts: str) -> None:
    code = (
        "from cronsite import settings as site; "
        "print(site.SECURE_HSTS_SECONDS, site.SECURE_HSTS_INCLUDE_SUBDOMAINS, site.SECURE_HSTS_PRELOAD)"
    )
    environment = {"PATH": os.environ["PATH"], "ENV_FILE": "/nonexistent", "SECRET_KEY": "x", **env}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, env=environment, capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.strip() == hsts


def test_a_login_with_a_foreign_next_page_leads_to_the_index(db: None, client: Client) -> None:
    user = UserFactory(superuser=True)
    values = {"username": user.username, "password": PASSWORD, "next": "https://example.org/"}
    response = client.post(reverse("admin:login"), values)
    assert (response.status_code, response.url) == (302, reverse("admin:index"))  # type: ignore[attr-defined]


def test_the_umask_applies_to_stored_files(tmp_path: Path) -> None:
    previous = os.umask(0o077)
    try:
        name = FileSystemStorage(tmp_path / "media").save("a/b.txt", ContentFile("x"))
    finally:
        os.umask(previous)
    for path, mode in ((name, 0o600), ("a", 0o700), ("", 0o700)):
        assert stat.S_IMODE((tmp_path / "media" / path).stat().st_mode) == mode


def test_an_unknown_address_leads_back_to_the_pages(db: None) -> None:
    client = Client()
    client.force_login(UserFactory(superuser=True))
    answer = client.get("/admin/nowhere/")
    assert answer.status_code == 404
    assert "<h1>Page not found</h1>" in answer.content.decode()
    assert 'id="nav-sidebar"' in answer.content.decode()


def test_a_forbidden_page_says_so_in_words(db: None) -> None:
    client = Client()
    client.force_login(UserFactory())
    answer = client.get("/admin/scheduling/scheduler/")
    assert answer.status_code == 403
    assert "You may not see this page." in answer.content.decode()
    assert "Traceback" not in answer.content.decode()


def test_an_error_page_of_a_visitor_names_no_pages(db: None) -> None:
    answer = Client().get("/nowhere/")
    assert answer.status_code == 404
    assert "Page not found" in answer.content.decode()
    assert "nav-sidebar" not in answer.content.decode()
