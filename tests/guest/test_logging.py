"""In a project with LOGGING of its own, this stays as it is, and its handlers hear each permanent failure once."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from tests.guest.project import WORKERS, GuestProject

pytestmark = [pytest.mark.processes, pytest.mark.any_database]

LOGGING = """
ADMINS = [("Ops", "ops@example.com")]
EMAIL_BACKEND = "django.core.mail.backends.filebased.EmailBackend"
EMAIL_FILE_PATH = BASE_DIR / "mails"
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"own": {"format": "OWN %(levelname)s %(name)s %(message)s"}},
    "handlers": {
        "file": {"class": "logging.FileHandler", "filename": str(BASE_DIR / "errors.log"), "level": "ERROR"},
        "all": {"class": "logging.FileHandler", "filename": str(BASE_DIR / "all.log"), "formatter": "own"},
        "mail": {"class": "django.utils.log.AdminEmailHandler", "level": "ERROR"},
        "console": {"class": "logging.StreamHandler", "formatter": "own"},
    },
    "root": {"handlers": ["file", "all", "mail", "console"], "level": "INFO"},
}
"""

BREAK = """
from scheduling.api import run
run("broken", {"region": "us"})
"""

TELL = """
from pydantic import SecretStr

class Secret(BaseModel):
    token: SecretStr

@worker("tell", params=Secret)
def tell(params: Secret, run: Run) -> None:
    token = params.token.get_secret_value()
    log = logging.getLogger("orders")
    log.warning("with %s", token)
    try:
        raise ValueError(f"{token} is bad")
    except ValueError:
        log.exception("it failed")
        raise
"""

OUTPUT = """
from scheduling.models import Output
print("".join(Output.objects.order_by("pk").values_list("text", flat=True)))
"""


def fail_once(project: GuestProject) -> str:
    """Run a handler that fails for good; return the output of the consumer."""
    project.python(BREAK)
    done = project.run("run_worker", "--max-runs", "1")
    assert done.returncode == 0, done.stdout
    return done.stdout


def mails(project: GuestProject) -> list[str]:
    return [path.read_text() for path in sorted((project.folder / "mails").glob("*.log"))]


def test_the_projects_error_handlers_are_called_once(guest: Callable[..., GuestProject]) -> None:
    project = guest(LOGGING).migrated()
    printed = fail_once(project)
    errors = (project.folder / "errors.log").read_text()
    assert errors.count("PERMANENTLY FAILED TASK") == 1
    assert errors.startswith("PERMANENTLY FAILED TASK: LookupError: no stock in us (")  # and no other line of ERROR
    assert re.match(r"PERMANENTLY FAILED TASK: .*\) \[Worker:broken:\d+\]$", errors, re.MULTILINE)
    assert "raise LookupError" in errors  # the traceback of the child, by `exc_info`
    assert errors.rstrip().endswith("LookupError: no stock in us")
    (mail,) = mails(project)
    assert "PERMANENTLY FAILED TASK: LookupError: no stock in us" in mail
    assert "[Worker:broken:" in mail
    assert "raise LookupError" in mail
    lines = printed.splitlines()
    assert any(line.startswith("OWN INFO scheduling.") for line in lines), printed
    assert not any("[INFO]" in line for line in lines), printed  # the project's handlers speak, ours do not


def test_what_a_handler_logs_reaches_the_projects_files_and_the_output_once(
    guest: Callable[..., GuestProject],
) -> None:
    project = guest(LOGGING).migrated()
    fail_once(project)
    text = (project.folder / "all.log").read_text()
    assert text.count("OWN WARNING shop nearly broken") == 1
    (repeated,) = [line for line in text.splitlines() if "scheduling.output" in line and "nearly broken" in line]
    assert repeated.startswith("OWN INFO scheduling.output")
    assert project.python(OUTPUT).count("nearly broken") == 1


def test_the_projects_files_get_no_secret(guest: Callable[..., GuestProject]) -> None:
    project = guest(LOGGING)
    project.write("shop/workers.py", WORKERS + TELL)
    project.migrated()
    project.python('from scheduling.api import run\nrun("tell", {"token": "hunter2-and-more"})')
    assert project.run("run_worker", "--max-runs", "1").returncode == 0
    told = (project.folder / "all.log").read_text()
    assert "OWN WARNING orders with ••••••" in told
    assert "OWN ERROR orders it failed" in told
    for text in (told, (project.folder / "errors.log").read_text(), *mails(project)):
        assert "hunter2" not in text


def test_without_handlers_of_the_project_our_lines_are_printed(guest: Callable[..., GuestProject]) -> None:
    project = guest().migrated()
    printed = fail_once(project)
    (line,) = [line for line in printed.splitlines() if "PERMANENTLY" in line]
    assert "[ERROR]" in line
    assert any("[INFO]" in line and "Processing task" in line for line in printed.splitlines())


def test_a_muted_logger_stays_mute(guest: Callable[..., GuestProject]) -> None:
    muted = {"version": 1, "disable_existing_loggers": False, "loggers": {"scheduling": {"propagate": False}}}
    project = guest(f"LOGGING = {muted!r}").migrated()
    printed = fail_once(project)
    assert "[INFO]" not in printed
