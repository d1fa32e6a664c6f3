"""The tests check the admin pages of reports and artefacts: permissions, downloads, lists and forms."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client
from django.test.utils import CaptureQueriesContext
from pydantic import BaseModel, Field

from reports.delivery import deliver
from reports.models import Report
from reports.registry import report
from scheduling.models import Artefact, SchedulerExecution
from tests.reports.support import Numbers, artefact_of, execution_of, run_of

pytestmark = pytest.mark.django_db

LIST = "/admin/scheduling/artefact/"


def client_with(*codenames: str) -> Client:
    """Return the test client of a staff user with only these permissions."""
    user = User.objects.create_user(f"staff-{len(codenames)}", is_staff=True)
    user.user_permissions.set(Permission.objects.filter(codename__in=codenames))
    client = Client()
    client.force_login(user)
    return client


def download(client: Client, artefact: Artefact) -> Any:
    """Request the download of an artefact and return the response."""
    return client.get(f"{LIST}{artefact.pk}/download/")


def body(response: Any) -> bytes:
    """Return the content of a streamed response and close the response."""
    content = b"".join(response.streaming_content)
    response.close()
    return content


def test_view_permission_allows_download() -> None:
    response = download(client_with("view_artefact"), artefact_of(execution_of("succeeded")))
    assert response.status_code == 200
    assert body(response) == b"a,b"
    assert response["Content-Type"] == "text/csv; charset=utf-8"
    assert response["Content-Disposition"] == 'attachment; filename="numbers.csv"'
    assert response["X-Content-Type-Options"] == "nosniff"
    assert "no-store" in response["Cache-Control"]
    assert response["Content-Length"] == "3"


def test_other_users_may_not_download() -> None:
    artefact = artefact_of(execution_of("succeeded"))
    assert download(client_with("view_schedulerexecution", "view_report"), artefact).status_code == 403
    assert client_with("view_report").get(LIST).status_code == 403
    response = download(Client(), artefact)
    assert response.status_code == 302
    assert response["Location"].startswith("/admin/login/")


def test_a_download_refuses_post(admin_client: Client) -> None:
    artefact = artefact_of(execution_of("succeeded"))
    assert admin_client.post(f"{LIST}{artefact.pk}/download/").status_code == 405


def test_values_written_by_plain_sql_are_made_safe(admin_client: Client) -> None:
    artefact = artefact_of(execution_of("succeeded"))
    Artefact.objects.filter(pk=artefact.pk).update(filename='../x"\r\nSet-Cookie: a=b;.svg', content_type="text/html")
    response = download(admin_client, artefact)
    assert body(response) == b"a,b"
    assert response["Content-Type"] == "application/octet-stream"
    assert response["Content-Disposition"] == 'attachment; filename="xSet-Cookie_ab.svg"'
    assert "a" not in response.cookies


@pytest.mark.parametrize(
    ("filename", "content_type"),
    [
        ("numbers.json", "application/json"),
        ("numbers.jsonl", "application/jsonl"),
        ("numbers.html", "application/octet-stream"),  # a browser must not show it as a page of this site
    ],
)
def test_every_format_is_downloaded_and_never_shown(filename: str, content_type: str, admin_client: Client) -> None:
    artefact = artefact_of(execution_of("succeeded"), filename=filename)
    response = download(admin_client, artefact)
    assert body(response) == b"a,b"
    assert response["Content-Type"] == content_type
    assert response["Content-Disposition"] == f'attachment; filename="{filename}"'
    assert response["X-Content-Type-Options"] == "nosniff"


@pytest.mark.parametrize("name", ["../../../etc/passwd", "/etc/passwd", "reports/gone.csv", ""])
def test_a_missing_file_has_an_error_message(name: str, admin_client: Client) -> None:
    artefact = artefact_of(execution_of("succeeded"))
    Artefact.objects.filter(pk=artefact.pk).update(file=name)
    response = admin_client.get(f"{LIST}{artefact.pk}/download/", follow=True)
    assert response.redirect_chain == [(f"{LIST}{artefact.pk}/change/", 302)]
    assert "cannot be read from here" in response.content.decode()


def test_a_deleted_artefact_has_an_error_message(admin_client: Client) -> None:
    response = admin_client.get(f"{LIST}12345/download/", follow=True)
    assert "There is no artefact 12345" in response.content.decode()


def test_pages_show_whether_a_file_is_a_result_and_no_storage_url(admin_client: Client, settings: Any) -> None:
    settings.MEDIA_URL = "/media-of-the-project/"
    execution = execution_of("succeeded", attempt=2)
    result, broken = artefact_of(execution, attempt=2), artefact_of(execution, attempt=1)
    page = admin_client.get(LIST).content.decode()
    assert f"{LIST}{result.pk}/download/" in page
    assert "no, this attempt did not succeed" in page
    detail = admin_client.get(f"{LIST}{broken.pk}/change/").content.decode()
    assert f"{LIST}{broken.pk}/download/" in detail
    assert "no, this attempt did not succeed" in detail
    assert "media-of-the-project" not in page + detail


def test_the_page_shows_the_checksum_of_the_download(admin_client: Client) -> None:
    (artefact,) = deliver(Numbers(), None, run_of(execution_of()))
    page = admin_client.get(f"{LIST}{artefact.pk}/change/").content.decode()
    assert f"<code>{sha256(body(download(admin_client, artefact))).hexdigest()}</code>" in page


@pytest.mark.parametrize(("stored", "shown"), [("<b>\x1b", "<code>&lt;b&gt;\\x1b</code>"), ("", ">-</div>")])
def test_a_checksum_written_by_plain_sql_is_shown_as_text(stored: str, shown: str, admin_client: Client) -> None:
    artefact = artefact_of(execution_of("succeeded"), checksum=stored)
    assert shown in admin_client.get(f"{LIST}{artefact.pk}/change/").content.decode()


def test_artefacts_cannot_be_added_changed_or_deleted(admin_client: Client) -> None:
    artefact = artefact_of(execution_of("succeeded"))
    assert admin_client.get(f"{LIST}add/").status_code == 403
    assert admin_client.post(f"{LIST}{artefact.pk}/change/", {"attempt": 7}).status_code == 403
    assert admin_client.post(f"{LIST}{artefact.pk}/delete/", {"post": "yes"}).status_code == 403
    assert Artefact.objects.filter(pk=artefact.pk, attempt=1).exists()


def test_the_number_of_queries_does_not_depend_on_the_rows(admin_client: Client) -> None:
    def queries() -> list[str]:
        from django.db import connection

        with CaptureQueriesContext(connection) as captured:
            assert admin_client.get(LIST).status_code == 200
        return [query["sql"] for query in captured]

    artefact_of(execution_of("succeeded"))
    queries()  # the first page of a process asks for what it remembers
    one = queries()
    for _ in range(5):
        artefact_of(execution_of("succeeded"))
    many = queries()
    assert len(one) == len(many)
    assert not any("JOIN" in sql and "scheduling_artefact" in sql for sql in many)


@pytest.mark.parametrize(
    ("term", "found"), [("numb", 2), ("NUMB", 2), ("umbers", 0), ("{execution}", 1), ("9" * 18, 0), ("9" * 40, 0)]
)
def test_search_by_execution_and_by_name(term: str, found: int, admin_client: Client) -> None:
    execution = execution_of("succeeded")
    artefact_of(execution)
    artefact_of(execution_of("succeeded"))
    response = admin_client.get(LIST, {"q": term.format(execution=execution.pk)})
    assert response.context["cl"].result_count == found


def test_an_artefact_whose_execution_is_gone_does_not_break_the_list(admin_client: Client) -> None:
    artefact = artefact_of(execution_of("succeeded"))
    SchedulerExecution.objects.all()._raw_delete("default")  # type: ignore[attr-defined]
    assert "no, this attempt did not succeed" in admin_client.get(LIST).content.decode()
    body(download(admin_client, artefact))


class RegionParams(BaseModel):
    """A params model with a required and an optional field."""

    region: str = Field(min_length=2, description="Where to look.")
    days: int = Field(7, ge=1, le=90)


@pytest.fixture
def region_report(own_registry: None) -> Report:
    """A registered report with a required and an optional parameter."""
    report("tests.region", params=RegionParams)(Numbers)
    return Report.objects.create(controller="tests.region", title="Regions")


def post(client: Client, row: Report, **fields: str) -> Any:
    """Send the change form of a report with these fields and return the response."""
    data = {"title": row.title, "description": "", "params": "{}", **fields}
    return client.post(f"/admin/cron_reports/report/{row.pk}/change/", data)


def test_a_reports_page_shows_its_code_and_its_parameters(admin_client: Client, region_report: Report) -> None:
    page = admin_client.get(f"/admin/cron_reports/report/{region_report.pk}/change/").content.decode()
    assert "registered" in page
    assert "Where to look." in page
    assert 'name="controller"' not in page  # the field is read-only after the report was added
    assert "code missing" not in page
    gone = Report.objects.create(controller="tests.gone")
    assert "code missing" in admin_client.get(f"/admin/cron_reports/report/{gone.pk}/change/").content.decode()


def test_defaults_may_be_incomplete_but_not_wrong(admin_client: Client, region_report: Report) -> None:
    assert post(admin_client, region_report, params='{"days": 30}').status_code == 302
    region_report.refresh_from_db()
    assert region_report.params == {"days": 30}
    response = post(admin_client, region_report, params='{"days": 300}')
    assert "at most 90" in response.content.decode()
    response = post(admin_client, region_report, params="[1]")
    assert "Write a JSON object" in response.content.decode()
    region_report.refresh_from_db()
    assert region_report.params == {"days": 30}


def test_the_controller_cannot_be_changed_by_a_hand_made_post(admin_client: Client, region_report: Report) -> None:
    assert post(admin_client, region_report, controller="failure_review").status_code == 302
    region_report.refresh_from_db()
    assert region_report.controller == "tests.region"


def test_the_list_of_reports_has_the_built_in_one(admin_client: Client) -> None:
    page = admin_client.get("/admin/cron_reports/report/").content.decode()
    assert "Failure review" in page
    assert "failure_review" in page


def test_reports_have_the_same_pages_as_workers(admin_client: Client, region_report: Report) -> None:
    assert '<option value="tests.region">' in admin_client.get("/admin/cron_reports/report/add/").content.decode()
    gone = Report.objects.create(controller="tests.gone", description="Old numbers.\nMore.")
    page = admin_client.get("/admin/cron_reports/report/?q=tests").content.decode()
    for text in ("tests.region", "Regions", "tests.gone", "Old numbers.", "code missing"):
        assert text in page, text
    assert (str(region_report), region_report.handler_name) == ("Regions", "tests.region")
    assert (str(gone), gone.handler_name) == ("tests.gone", "tests.gone")


def test_files_are_stored_in_the_folder_of_the_test(media: Path) -> None:
    artefact = artefact_of(execution_of())
    assert Path(artefact.file.path).is_relative_to(media)
