"""The worker `http_request` calls public addresses only, and its end says whether a later try can work."""

from __future__ import annotations

import gc
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import pytest
import requests
from pydantic import ValidationError
from requests_hardened.ip_filter import InvalidIPAddress

from scheduling.models import Attempt, Output, SchedulerExecution
from scheduling.notify import guarded_http
from scheduling.notify.connection_deadline import ConnectionDeadline
from scheduling.notify.guarded_http import Forbidden, NoAnswer, call
from scheduling.workers.http_request import HttpRequestParams
from tests.factories import ManualExecutionFactory, SchedulerFactory
from tests.notify.web_server import QuietHandler, web_server
from tests.support import Commands


@dataclass
class Site:
    """A web server: the requests that it got, and how it answers."""

    port: int = 0
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b"fine"
    delay: float = 0.0
    requests: list[tuple[str, str, dict[str, str], bytes]] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/path?q=1"


@pytest.fixture
def site() -> Iterator[Site]:
    """Run a web server on a free port of this machine."""
    found = Site()

    class Handler(QuietHandler):
        def answer(self) -> None:
            body = self.read_body()
            found.requests.append((self.command, self.path, dict(self.headers), body))
            self.send_response(found.status)
            for name, value in found.headers.items():
                self.send_header(name, value)
            self.end_headers()
            for start in range(0, len(found.body), 16):
                self.wfile.write(found.body[start : start + 16])
                time.sleep(found.delay)

        do_GET = do_POST = do_HEAD = answer

    with web_server(Handler) as found.port:
        yield found


@pytest.mark.parametrize(
    "host",
    ["127.0.0.1", "localhost", "[::1]", "0", "10.0.0.1", "192.168.1.1", "172.16.0.1", "169.254.169.254",
     "100.64.0.1", "2130706433", "0x7f000001", "[::ffff:127.0.0.1]", "[fd00::1]", "127.1"],
)  # fmt: skip
def test_internal_addresses_are_forbidden(site: Site, host: str) -> None:
    with pytest.raises((Forbidden, NoAnswer)) as refused:
        call("GET", f"http://{host}:{site.port}/", {}, b"", 2)
    assert site.requests == []
    if refused.type is Forbidden:
        assert "CRON_INTERNAL_HOSTS" in str(refused.value)


@pytest.mark.parametrize(
    "url", ["ftp://example.com", "file:///etc/passwd", "http://", "http://[::1", "http://a:99999/", "//x"]
)
def test_an_address_that_is_none_is_forbidden(url: str) -> None:
    with pytest.raises(Forbidden):
        call("GET", url, {}, b"", 2)


def test_a_host_that_the_setting_names_may_be_internal(site: Site, settings: Any) -> None:
    settings.CRON_INTERNAL_HOSTS = f"127.0.0.1:{site.port}, other.internal"
    answer = call("POST", site.url, {"X-One": "1"}, b"body", 5)
    assert (answer.status, answer.body, answer.whole) == (200, b"fine", True)
    ((method, path, headers, body),) = site.requests
    assert (method, path, headers["X-One"], body) == ("POST", "/path?q=1", "1", b"body")
    with pytest.raises(Forbidden):
        call("GET", f"http://127.0.0.1:{site.port + 1}/", {}, b"", 2)  # the other ports stay closed


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1/", "http://127.0.0.1:80/", "https://127.0.0.1/", "http://127.0.0.1:81/"]
)
@pytest.mark.parametrize("port", [80, 443])
def test_the_form_and_the_call_allow_the_same_ports(url: str, port: int, settings: Any) -> None:
    settings.CRON_INTERNAL_HOSTS = f"127.0.0.1:{port}"
    parts = urlsplit(url)
    session = guarded_http._session(url, ConnectionDeadline(1))
    request = requests.Request("GET", url).prepare()
    outcomes = []
    for ask in (
        lambda: guarded_http.check_host(url),
        lambda: session.get_adapter(url).build_connection_pool_key_attributes(request, True),
    ):
        try:
            ask()
            outcomes.append(True)
        except (Forbidden, InvalidIPAddress):
            outcomes.append(False)
    assert outcomes == [port == (parts.port or {"http": 80, "https": 443}[parts.scheme])] * 2


@pytest.mark.parametrize("sign", ["\\", "\\\\", "/\\", "#", "?", "%5C", "\t", "\n", ";"])
def test_a_named_host_opens_no_other_host(site: Site, settings: Any, sign: str) -> None:
    settings.CRON_INTERNAL_HOSTS = "allowed.internal"
    with pytest.raises((Forbidden, NoAnswer)):
        call("GET", f"http://127.0.0.1:{site.port}{sign}@allowed.internal/", {}, b"", 2)
    assert site.requests == []


def test_no_proxy_of_the_environment_is_asked(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{site.port}")
    with pytest.raises(Forbidden):
        call("GET", "http://10.0.0.1/", {}, b"", 2)
    assert site.requests == []


def test_a_long_and_a_slow_answer_are_bounded(site: Site, settings: Any) -> None:
    settings.CRON_INTERNAL_HOSTS = "127.0.0.1"
    site.body = b"x" * (guarded_http.BODY_LENGTH + 1)
    answer = call("GET", site.url, {}, b"", 30)
    assert (len(answer.body), answer.whole) == (guarded_http.BODY_LENGTH, False)
    site.delay = 0.3
    with pytest.raises(NoAnswer):
        call("GET", site.url, {}, b"", 1)


def test_an_answer_that_is_not_read_to_its_end_leaves_no_connection(site: Site, settings: Any) -> None:
    settings.CRON_INTERNAL_HOSTS = "127.0.0.1"
    site.headers, site.body, site.delay = {"Connection": "close"}, b"x" * 1_000, 0.3
    gc.collect()
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        with pytest.raises(NoAnswer) as failed:
            call("GET", site.url, {}, b"", 1)
        failed.value.cycle = failed  # type: ignore[attr-defined]  # so that the collector frees all at once
        del failed
        gc.collect()
    assert [str(warning.message) for warning in found] == []


@pytest.mark.parametrize(
    "params",
    [{}, {"url": "ftp://x"}, {"url": "http://a b"}, {"url": "http://x", "method": "TRACE"},
     {"url": "http://x", "other": 1},
     {"url": "http://x", "headers": {"a": "b\r\nc: d"}}, {"url": "http://x", "headers": {"a b": "c"}},
     {"url": "http://x", "secret_headers": {"a": "b\nc"}}, {"url": "http://x", "expected_status": [42]},
     {"url": "http://x", "timeout_seconds": 0}],
)  # fmt: skip
def test_wrong_parameters_are_refused_when_saved(params: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        HttpRequestParams.model_validate(params)


@pytest.mark.processes
@pytest.mark.any_database
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    ("answer", "params", "state", "said"),
    [
        ({}, {}, "succeeded", ""),
        ({"status": 404}, {}, "failed", "The server answered 404."),
        ({"status": 404}, {"expected_status": [404]}, "succeeded", ""),
        ({"status": 503, "headers": {"Retry-After": "1800"}}, {}, "retrying", "The server answered 503."),
        (
            {"status": 302, "headers": {"Location": "http://169.254.169.254/"}},
            {},
            "failed",
            "redirects are not followed",
        ),
        ({}, {"url": "http://127.0.0.1:9/"}, "failed", "The setting CRON_INTERNAL_HOSTS names the hosts"),
    ],
)
def test_a_run(
    commands: Commands, site: Site, answer: dict[str, Any], params: dict[str, Any], state: str, said: str
) -> None:
    for name, value in answer.items():
        setattr(site, name, value)
    own = {"url": site.url, "secret_headers": {"Authorization": "Bearer hunter2-and-more"}, **params}
    site.body = b"you sent Bearer hunter2-and-more"
    schedule = SchedulerFactory(rare=True, handler="http_request", params=own)
    run = ManualExecutionFactory(scheduler=schedule, params=own)
    worker = commands.start("run_worker", "--max-runs", "1", CRON_INTERNAL_HOSTS=f"127.0.0.1:{site.port}")
    assert worker.wait(90) == 0, commands.log(worker)
    row, attempt = SchedulerExecution.objects.get(pk=run.pk), Attempt.objects.get(execution=run.pk)
    assert row.state == state
    assert said in attempt.error_message
    if "url" not in params:
        ((_method, _path, headers, _body),) = site.requests
        assert headers["Authorization"] == "Bearer hunter2-and-more"
        assert headers["Idempotency-Key"] == f"{run.pk}-{run.execution_key}"
        output = "".join(Output.objects.filter(execution=run.pk).values_list("text", flat=True))
        assert "you sent ••••••" in output
        assert "hunter2" not in output
    if state == "retrying":
        assert attempt.retry_at is not None
        assert (attempt.retry_at - attempt.finished_at).total_seconds() == pytest.approx(1_800, abs=2)
