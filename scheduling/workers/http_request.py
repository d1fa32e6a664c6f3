"""The built-in worker `http_request`: calls an address and expects a status. It needs the extra `http`."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, SecretStr
from pydantic_core import PydanticCustomError

from scheduling.core.outcome import NonRetryableError, RetryableError
from scheduling.core.text import visible_text
from scheduling.handlers import Run, worker
from scheduling.notify.guarded_http import IS_INSTALLED, LATER, Answer, Forbidden, NoAnswer, call


def _address(url: str) -> str:
    if not url.lower().startswith(("http://", "https://")) or any(character.isspace() for character in url):
        raise PydanticCustomError("url", "must begin with http:// or https:// and have no spaces")
    return url


def _header(text: str) -> str:
    if "\n" in text or "\r" in text:
        raise PydanticCustomError("header", "must be one line")
    return text


def _secret_header(value: SecretStr) -> SecretStr:
    _header(value.get_secret_value())
    return value


Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9!#$%&'*+.^_`|~-]+$", max_length=100)]
Text = Annotated[str, Field(max_length=4_000), AfterValidator(_header)]
Secret = Annotated[SecretStr, Field(max_length=4_000), AfterValidator(_secret_header)]


class HttpRequestParams(BaseModel):
    """An HTTP request and the expected answer."""

    model_config = ConfigDict(extra="forbid")

    url: Annotated[str, Field(max_length=2_000), AfterValidator(_address)] = Field(description="The address to call.")
    method: Literal["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD"] = "GET"
    headers: dict[Name, Text] = Field(default_factory=dict, max_length=50, description="Headers, as a JSON object.")
    secret_headers: dict[Name, Secret] = Field(
        default_factory=dict, max_length=50, description="Headers whose values are hidden, such as Authorization."
    )
    body: str = Field(
        "", max_length=100_000, description="The body of the request.", json_schema_extra={"format": "textarea"}
    )
    expected_status: list[Annotated[int, Field(ge=100, le=599)]] = Field(
        default_factory=list, max_length=20, description="The statuses that are a success. Empty: 200 to 299."
    )
    timeout_seconds: float = Field(30, ge=1, le=600, description="The time limit for the whole answer.")


def http_request(params: HttpRequestParams, run: Run) -> None:
    """Calls an address. The answer is in the output of the run.

    Raises:
        NonRetryableError: the address is internal, or the status says that a later try cannot work.
        RetryableError: the status says that a later try can work, or the server did not answer.
    """
    secrets = {name: value.get_secret_value() for name, value in params.secret_headers.items()}
    # A server can recognise a retry by this header.
    headers = {"User-Agent": "cronsite", "Idempotency-Key": run.idempotency_key, **params.headers, **secrets}
    run.log.info("%s %s", params.method, params.url)
    try:
        answer = call(params.method, params.url, headers, params.body.encode(), params.timeout_seconds)
    except Forbidden as error:
        raise NonRetryableError(str(error)) from None
    except NoAnswer as error:
        raise RetryableError(f"No answer. {visible_text(error, 500)}") from error
    _show(answer, run)
    if answer.status in params.expected_status or (not params.expected_status and 200 <= answer.status <= 299):
        return
    said = f"The server answered {answer.status}."
    if 300 <= answer.status <= 399:
        location = visible_text(answer.headers.get("Location", "no address"), 300)
        said += f" It points to {location}, but redirects are not followed."
    if answer.status in LATER:
        raise RetryableError(said, retry_after=answer.retry_after)
    raise NonRetryableError(said)


def _show(answer: Answer, run: Run) -> None:
    run.log.info("Status %d, %d bytes%s", answer.status, len(answer.body), "" if answer.whole else " and more")
    if answer.body:
        print(answer.body.decode("utf-8", "replace"))  # noqa: T201 - the output of the run


if IS_INSTALLED:
    # The time limit ends a server that sends its headers slowly. It is longer than the longest `timeout_seconds`.
    worker("http_request", params=HttpRequestParams, title="HTTP request", time_limit=660)(http_request)
