"""Errors, retries and credentials, against answers that are made up: the service gives them rarely."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import httpx
import pytest
from conftest import Account

from tidewatch import (
    ApiError,
    AsyncClient,
    Client,
    NoAnswerError,
    Retry,
    ServiceUnavailableError,
    TooManyRequestsError,
    UnauthorizedError,
    UnexpectedAnswerError,
    ValidationError,
)

URL = "http://service.invalid"
AT_ONCE = Retry(attempts_max=3, backoff_seconds=0, backoff_seconds_max=0)
BUSY = httpx.Response(503, json={"error": "Service Unavailable", "message": "saturated"}, headers={"Retry-After": "0"})
BUCKETS = httpx.Response(
    200, json={"buckets": [], "pagination": {"limit": 100, "offset": 0, "total": 0, "hasMore": False}}
)


class Script:
    """Gives these answers one after another, and keeps the requests."""

    def __init__(self, *answers: httpx.Response | Exception) -> None:
        self.answers = list(answers)
        self.requests: list[httpx.Request] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return httpx.Response(answer.status_code, headers=answer.headers, content=answer.content)

    def client(self, retry: Retry = AT_ONCE) -> Client:
        return Client(URL, key="svc_a_x", retry=retry, transport=httpx.MockTransport(self))


def test_reads_are_sent_again() -> None:
    script = Script(BUSY, httpx.ReadError("reset"), BUCKETS)
    assert len(script.client().buckets.list()) == 0
    assert len(script.requests) == 3


def test_asynchronous_reads_are_sent_again() -> None:
    script = Script(BUSY, httpx.ReadError("reset"), BUCKETS)

    async def work() -> None:
        async with AsyncClient(URL, key="x", retry=AT_ONCE, transport=httpx.MockTransport(script)) as client:
            assert len(await client.buckets.list()) == 0

    asyncio.run(work())
    assert len(script.requests) == 3


def test_attempts_are_bounded() -> None:
    script = Script(BUSY, BUSY, BUSY, BUCKETS)
    with pytest.raises(ServiceUnavailableError):
        script.client().buckets.list()
    assert len(script.requests) == 3


@pytest.mark.parametrize("failure", [BUSY, httpx.ReadError("reset"), httpx.ReadTimeout("late")])
def test_what_may_have_taken_effect_is_not_sent_again(failure: httpx.Response | Exception) -> None:
    creations: list[Callable[[Client], object]] = [
        lambda client: client.buckets.create("x"),
        lambda client: client.buckets.delete("0" * 24),
        lambda client: client.evaluations.verdict("0" * 24, "met"),
        lambda client: client.data.delete("0" * 24, {"startTime": "2026-01-01"}),
        lambda client: client.boards.update("0" * 24, name="x", version=3),
        lambda client: client.request("GET", "/api/buckets"),
    ]
    for create in creations:
        script = Script(failure, BUCKETS)
        with pytest.raises((ServiceUnavailableError, NoAnswerError)):
            create(script.client())
        assert len(script.requests) == 1


@pytest.mark.parametrize("failure", [httpx.ConnectError("refused"), httpx.Response(429, json={})])
def test_what_cannot_have_taken_effect_is_sent_again(failure: httpx.Response | Exception) -> None:
    script = Script(failure, httpx.Response(201, json={"bucket": {"_id": "1"}}))
    assert script.client().buckets.create("x")["_id"] == "1"


def test_a_point_keeps_its_idempotency_key() -> None:
    script = Script(BUSY, httpx.ReadError("reset"), httpx.Response(201, json={"dataPoint": {}}))
    script.client().data.insert("0" * 24, "1" * 24, {"x": 1})
    assert len({request.headers["Idempotency-Key"] for request in script.requests}) == 1
    other = Script(httpx.Response(201, json={"dataPoint": {}}))
    other.client().data.insert("0" * 24, "1" * 24, {"x": 1})
    assert other.requests[0].headers["Idempotency-Key"] != script.requests[0].headers["Idempotency-Key"]


def test_a_long_retry_after_is_not_waited_for() -> None:
    month = httpx.Response(
        429, json={"error": "Too Many Requests", "message": "used up"}, headers={"Retry-After": "9999"}
    )
    script = Script(month)
    with pytest.raises(TooManyRequestsError) as refused:
        script.client().buckets.list()
    assert refused.value.retry_after == 9999


def test_waits_grow_with_jitter_and_a_bound() -> None:
    longest = Retry(backoff_seconds=1, backoff_seconds_max=10, random=lambda: 0.0)
    assert [longest.backoff(attempt) for attempt in (1, 2, 3, 4, 5, 100_000)] == [1, 2, 4, 8, 10, 10]
    shortest = Retry(backoff_seconds=1, backoff_seconds_max=10, random=lambda: 1.0)
    assert shortest.backoff(3) == 2
    # Never sooner than what the service asks for.
    assert longest.backoff(1, asked=7.0) == 7.0
    assert shortest.backoff(1, asked=7.0) == 7.5


def test_errors_say_what_is_wrong(account: Account) -> None:
    with pytest.raises(ValidationError) as refused:
        account.client.buckets.create("x" * 101)
    error = refused.value
    assert (error.status, error.error) == (400, "Validation Error")
    assert error.details[0].path == ("name",)
    assert error.request_id
    assert "name" in str(error)
    with Client(account.url, key="svc_a_" + "x" * 43) as stranger, pytest.raises(UnauthorizedError):
        stranger.buckets.list()


def test_an_answer_of_something_else_is_an_error_of_its_own() -> None:
    page = httpx.Response(200, text="<html>welcome to the hotel</html>")
    with pytest.raises(UnexpectedAnswerError, match="hotel"):
        Script(page).client().buckets.list()
    with pytest.raises(UnexpectedAnswerError, match="status 302"):
        Script(httpx.Response(302, headers={"Location": "http://elsewhere.invalid/"})).client().buckets.list()
    with pytest.raises(UnexpectedAnswerError, match="no `pagination`"):
        Script(httpx.Response(200, json={})).client().buckets.list()
    with pytest.raises(ApiError, match="404"):
        Script(httpx.Response(404, text="nginx")).client().buckets.list()


def test_renewed_tokens_are_used() -> None:
    me = httpx.Response(200, json={"user": {}, "organization": {}}, headers={"X-Session-Token": "second"})
    script = Script(me, me)
    with Client(URL, token="first", transport=httpx.MockTransport(script)) as client:
        client.auth.sessions._transport.once(type(client.auth).me.describe(client.auth))
        client.auth.sessions._transport.once(type(client.auth).me.describe(client.auth))
    assert [request.headers["Authorization"] for request in script.requests] == ["Bearer first", "Bearer second"]


@pytest.mark.parametrize(
    ("url", "arguments"),
    [
        ("127.0.0.1:8080", {}),
        ("ftp://x", {}),
        ("http://user:secret@x", {}),
        ("http://x?key=secret", {}),
        ("http://x", {"key": ""}),
        ("http://x", {"key": "a\nb"}),
        ("http://x", {"key": "a", "token": "b"}),
    ],
)
def test_addresses_and_keys_that_cannot_be_right_are_refused(url: str, arguments: dict[str, str]) -> None:
    with pytest.raises(ValueError, match=r"address|key"):
        Client(url, **arguments)  # type: ignore[arg-type]


def test_ids_cannot_lead_to_other_routes() -> None:
    script = Script(httpx.Response(200, json={"bucket": {}}))
    client = script.client()
    for text in ("", ".", ".."):
        with pytest.raises(ValueError, match="no id"):
            client.buckets.get(text)
    client.request("GET", "/api/docs")
    assert script.requests[0].url.path == "/api/docs"
    quoted = Script(httpx.Response(404, json={"error": "Not Found", "message": "none"}))
    with pytest.raises(ApiError):
        quoted.client().buckets.get("../organization?x#y")
    assert quoted.requests[0].url.raw_path == b"/api/buckets/..%2Forganization%3Fx%23y"


def test_the_environment_names_the_service(account: Account, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TIDEWATCH_URL", raising=False)
    with pytest.raises(ValueError, match="TIDEWATCH_URL"):
        Client()
    monkeypatch.setenv("TIDEWATCH_URL", account.url)
    monkeypatch.setenv("TIDEWATCH_KEY", account.key)
    with Client() as client:
        assert client.organization.get()["_id"]


def test_numbers_that_json_has_not_are_refused_here(account: Account, bucket: str, source: str) -> None:
    with pytest.raises(ValueError, match="JSON"):
        account.client.data.insert(bucket, source, {"level": float("nan")})
