"""A site that prints its e-mails says so, as soon as a channel has e-mail addresses."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client
from django.utils import timezone as clock

from scheduling.models.visibility import EVERYTHING, Visibility
from scheduling.monitoring.findings import alerts
from scheduling.monitoring.findings.finding import Finding, Level
from scheduling.monitoring.findings.present import Present
from scheduling.operations.mail_backend import sends_mail
from tests.factories import ChannelFactory, GroupFactory, UserFactory

pytestmark = pytest.mark.django_db

BACKENDS = "django.core.mail.backends"


def found(visible: Visibility = EVERYTHING) -> list[Finding]:
    return [finding for finding in alerts.examine(Present(clock.now(), visible)) if finding.check == "mail"]


@pytest.mark.parametrize("name", ["console", "dummy", "filebased", "locmem"])
def test_a_channel_of_addresses_on_a_site_that_sends_no_mail_is_found(settings: Any, name: str) -> None:
    settings.EMAIL_BACKEND = f"{BACKENDS}.{name}.EmailBackend"
    ChannelFactory()
    assert found() == []
    ChannelFactory(email=True)
    (finding,) = found()
    assert finding.level is Level.WARN
    assert finding.seen.startswith("This site prints or keeps e-mails")
    assert "EMAIL_URL" in finding.advice


@pytest.mark.parametrize("path", [f"{BACKENDS}.smtp.EmailBackend", "shop.mail.Backend"])
def test_a_site_that_sends_mail_has_no_such_finding(settings: Any, path: str) -> None:
    settings.EMAIL_BACKEND = path
    ChannelFactory(email=True)
    assert found() == []


def test_the_mailers_of_newer_versions_of_django_count(settings: Any) -> None:
    settings.MAILERS = {"default": {"BACKEND": f"{BACKENDS}.smtp.EmailBackend"}}
    assert sends_mail()
    settings.MAILERS = {"default": {"BACKEND": f"{BACKENDS}.console.EmailBackend"}}
    assert not sends_mail()


def test_a_channel_of_another_group_is_not_told(settings: Any) -> None:
    own, other = GroupFactory(), GroupFactory()
    ChannelFactory(email=True, group=other)
    assert found(Visibility(frozenset({own.pk}))) == []
    assert len(found(Visibility(frozenset({other.pk})))) == 1


def test_the_dashboard_leads_to_the_channels(client: Client) -> None:
    ChannelFactory(email=True)
    client.force_login(UserFactory(superuser=True))
    page = client.get("/admin/scheduling/dashboard/part/attention/").content.decode()
    assert "This site prints or keeps e-mails instead of sending them" in page
    assert 'href="/admin/scheduling/channel/"' in page
