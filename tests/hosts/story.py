"""What happens in each host: a worker runs, another one fails for good, and is republished from the inbox.

All of it goes through the admin's pages. Nothing here depends on the language of the pages.
"""

from __future__ import annotations

import re
import threading
from urllib.parse import urlsplit

from tests.hosts.app import ERROR
from tests.hosts.project import Project
from tests.hosts.visitor import Page, Visitor
from tests.support import wait_for

INBOX = "scheduling/failedexecution/"
RUNS = "scheduling/schedulerexecution/"
WORKERS = "scheduling/worker/"
EACH_MINUTE = "tokens of each minute"


def up_and_tell(project: Project, port: int) -> None:
    """Migrate, start everything with `up`, sign in with the account that it prints, and go through the whole story."""
    project.manage("migrate")
    up = project.start("up", "--port", str(port))
    said = project.until(up, "Ctrl-C stops everything")
    (user,), (password,) = re.findall(r"User +(\S+)", said), re.findall(r"Password +(\S+)", said)
    visitor = Visitor(port, urlsplit(re.findall(r"Open +(\S+)", said)[0]).path.partition("scheduling/")[0])
    visitor.sign_in(user, password)
    tell(project, visitor)
    assert project.stop() == [0], project.log(up)
    told_once(project)


def tell(project: Project, visitor: Visitor) -> None:
    """Go through the whole story. The producer, the consumer and the web server run already."""
    add_schedule(visitor, "sync_tokens", "* * * * *", EACH_MINUTE)  # falls due while the rest happens
    runs(visitor)
    republished(project, visitor, fails(visitor))
    ended(visitor, scheduled(visitor), "good")


def runs(visitor: Visitor) -> None:
    """Run a worker with a parameter of this run, and find its output."""
    run = run_once(visitor, "sync_tokens", since_days="7")
    ended(visitor, run, "good")
    assert "syncing eu" in visitor.get(run.path).text


def fails(visitor: Visitor) -> Page:
    """Run a worker that fails for good. Return its page in the inbox."""
    run = run_once(visitor, "charge_cards")
    ended(visitor, run, "bad")
    inbox = visitor.get(INBOX)
    assert "charge_cards" in inbox.said()
    assert ERROR in inbox.said()
    failed = visitor.get(inbox.link(f"/{number(run)}/change/"))
    assert "Traceback" in failed.text
    return failed


def republished(project: Project, visitor: Visitor, failed: Page) -> None:
    """Mend the cause, and republish the failure. It runs again and leaves the inbox."""
    (project.folder / "mended").touch()
    visitor.send(visitor.get(failed.link("/republish/")))
    ended(visitor, failed, "good")
    assert "all cards are charged" in visitor.get(f"{RUNS}{number(failed)}/change/").text
    assert ERROR not in visitor.get(INBOX).said()


def told_once(project: Project) -> None:
    """The project's own error handler was called once in all processes: for the permanent failure."""
    found = project.errors()
    assert [entry["logger"].partition(".")[0] for entry in found] == ["scheduling"], found
    for part in (ERROR, "Traceback", "jobs/workers.py"):  # the line of the host's own code
        assert part in found[0]["traceback"], found


def add_schedule(visitor: Visitor, worker: str, cron: str, description: str) -> None:
    """Add a schedule on the worker's page."""
    page = visitor.get(visitor.get(WORKERS).link(text=worker))
    form = visitor.get(page.link("/scheduling/scheduler/add/"))
    page = visitor.send(form, schedule=cron, description=description)
    assert not page.soup.select(".errorlist"), page.said()


def run_once(visitor: Visitor, worker: str, **params: str) -> Page:
    """Press "Run once" on the worker's page, confirm, and return the page of the run."""
    page = visitor.get(visitor.get(WORKERS).link(text=worker))
    form = visitor.get(page.link("/run/"))
    names = {name: field for name in params for field in form.form() if field.endswith(name)}
    run = visitor.send(form, **{names[name]: value for name, value in params.items()})
    return run


def scheduled(visitor: Visitor) -> Page:
    """Wait for the first run of the schedule, and return its page."""

    pause = threading.Event()

    def first() -> Page | None:
        pause.wait(0.5)  # it may take a minute, and each look costs the web server a page
        page = visitor.get(f"{RUNS}?trigger=cron")
        return visitor.get(page.link("/change/")) if EACH_MINUTE in page.said() else None

    return wait_for(first, "the schedule has run")


def ended(visitor: Visitor, run: Page, tone: str) -> None:
    """Wait until the run has ended, with a badge of this tone."""

    def badge() -> str:
        chip = visitor.get(f"{RUNS}{number(run)}/chip/").text
        return chip if "data-poll-end" in chip else ""

    assert f"sch-{tone}" in wait_for(badge, f"{run.path} ends"), visitor.get(run.path).said()


def number(run: Page) -> str:
    """The id of the run on this page."""
    found = re.search(rf"/(?:{RUNS}|{INBOX})(\d+)/", run.path)
    assert found is not None, f"{run.path}:\n{run.said()}"
    return found[1]
