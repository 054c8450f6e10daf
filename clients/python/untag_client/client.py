"""Synchronous and asynchronous clients of the cloud's API."""
import asyncio
import json
import random
import time
import uuid
from typing import Any, AsyncIterator, Awaitable, Callable, Dict, Iterator, Mapping, Optional, TypeVar, cast

import httpx

from .errors import UntagError
from .operations import CHANGING, READ_BY_GET, AsyncOperations, SyncOperations

#: Delay before the first retry, s; it doubles with each retry.
_BASE_DELAY = 0.25
#: Maximum delay, s. The call fails if the server requests a longer one.
_MAX_DELAY = 20.0
_RETRIED_STATUSES = frozenset((429, 502, 503, 504))
_RETRIED_CODES = frozenset(("network", "timeout"))
_CODE_OF_STATUS = {
    401: "unauthenticated",
    403: "permission-denied",
    404: "not-found",
    413: "payload-too-large",
    429: "resource-exhausted",
    500: "internal",
    502: "unavailable",
    503: "unavailable",
    504: "unavailable",
}
_TEXT_FORMS = ("text/csv", "application/x-ndjson")

Request = TypeVar("Request", bound=Mapping[str, Any])
Response = TypeVar("Response", bound=Mapping[str, Any])


class Untag(SyncOperations):
    """Client of the API. Sends an Idempotency-Key with changes, and retries after transient failures."""

    def __init__(
        self,
        base_url: str,
        key: Optional[str] = None,
        *,
        timeout: float = 30.0,
        retries: int = 3,
        http: Optional[httpx.Client] = None,
    ) -> None:
        """``http``: a client of your own, such as ``httpx.Client(verify="ca.pem")`` for a private CA."""
        self._base_url, self._key, self._timeout, self._retries = base_url.rstrip("/"), key, timeout, retries
        self._http = http or httpx.Client()

    def __enter__(self) -> "Untag":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._http.close()

    def call(self, operation: str, request: Mapping[str, Any], *, idempotency_key: Optional[str] = None) -> Any:
        """Calls an operation by its name. Returns the JSON object, or the text of an export."""
        arguments = _arguments(self._base_url, self._key, self._timeout, operation, request, idempotency_key)
        attempt = 0
        while True:
            try:
                try:
                    response = self._http.request(**arguments)
                except httpx.HTTPError as error:
                    raise _network_error(self._base_url, error) from error
                return _answer(response)
            except UntagError as error:
                delay = _delay(error, attempt, self._retries)
                if delay is None:
                    raise
                time.sleep(delay)
            attempt += 1

    def pages(self, method: Callable[[Request], Response], request: Request) -> Iterator[Response]:
        """Yields all pages of a listing: ``for page in untag.pages(untag.fetchStores, {}): …``."""
        current: Optional[Request] = request
        while current is not None:
            page = method(current)
            yield page
            current = _next_request(current, page)


class AsyncUntag(AsyncOperations):
    """Like ``Untag``, with coroutines."""

    def __init__(
        self,
        base_url: str,
        key: Optional[str] = None,
        *,
        timeout: float = 30.0,
        retries: int = 3,
        http: Optional[httpx.AsyncClient] = None,
    ) -> None:
        self._base_url, self._key, self._timeout, self._retries = base_url.rstrip("/"), key, timeout, retries
        self._http = http or httpx.AsyncClient()

    async def __aenter__(self) -> "AsyncUntag":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        await self._http.aclose()

    async def call(self, operation: str, request: Mapping[str, Any], *, idempotency_key: Optional[str] = None) -> Any:
        """Calls an operation by its name. Returns the JSON object, or the text of an export."""
        arguments = _arguments(self._base_url, self._key, self._timeout, operation, request, idempotency_key)
        attempt = 0
        while True:
            try:
                try:
                    response = await self._http.request(**arguments)
                except httpx.HTTPError as error:
                    raise _network_error(self._base_url, error) from error
                return _answer(response)
            except UntagError as error:
                delay = _delay(error, attempt, self._retries)
                if delay is None:
                    raise
                await asyncio.sleep(delay)
            attempt += 1

    async def pages(self, method: Callable[[Request], Awaitable[Response]], request: Request) -> AsyncIterator[Response]:
        """Yields all pages of a listing."""
        current: Optional[Request] = request
        while current is not None:
            page = await method(current)
            yield page
            current = _next_request(current, page)


def _arguments(
    base_url: str,
    key: Optional[str],
    timeout: float,
    operation: str,
    request: Mapping[str, Any],
    idempotency_key: Optional[str],
) -> Dict[str, Any]:
    """Arguments of ``httpx`` for this call. Each attempt sends the same Idempotency-Key."""
    headers = {"accept": "application/json"}
    if key is not None:
        headers["authorization"] = f"Bearer {key}"
    if idempotency_key is not None or operation in CHANGING:
        headers["idempotency-key"] = idempotency_key or str(uuid.uuid4())
    call: Dict[str, Any] = {
        "method": "GET" if operation in READ_BY_GET else "POST",
        "url": f"{base_url}/{operation}",
        "headers": headers,
        "timeout": timeout,
        "follow_redirects": False,
    }
    files = {name: value for name, value in request.items() if isinstance(value, bytes)}
    if operation in READ_BY_GET:
        call["params"] = dict(request)
    elif files:
        call["files"] = {name: (name, value) for name, value in files.items()}
        call["data"] = {name: _form_value(value) for name, value in request.items() if name not in files}
    else:
        call["json"] = dict(request)
    return call


def _form_value(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _answer(response: httpx.Response) -> Any:
    """The JSON object or text of a response. Raises ``UntagError`` for a rejected call."""
    if response.is_success and response.headers.get("content-type", "").startswith(_TEXT_FORMS):
        return response.text
    try:
        body = response.json()
    except ValueError:
        body = None
    fields: Dict[str, Any] = body if isinstance(body, dict) else {}
    fields.setdefault("requestId", response.headers.get("x-request-id"))
    if response.is_success and isinstance(body, dict):
        if response.headers.get("x-request-id") == fields.get("requestId"):
            fields.pop("requestId")
        return fields
    if response.is_success:
        message = "the response is no JSON object: check that base_url is the address of the API"
        raise UntagError(message, response.status_code, "bad-answer", fields)
    code = str(fields.get("code") or _CODE_OF_STATUS.get(response.status_code, "bad-answer"))
    error = UntagError(
        fields.get("error") or f"the server answered {response.status_code}", response.status_code, code, fields
    )
    seconds = response.headers.get("retry-after", "")
    error.retry_after = float(seconds) if seconds.isdigit() else None
    raise error


def _network_error(base_url: str, error: httpx.HTTPError) -> UntagError:
    code = "timeout" if isinstance(error, httpx.TimeoutException) else "network"
    return UntagError(f"{base_url} cannot be reached: {error or type(error).__name__}", 0, code)


def _delay(error: UntagError, attempt: int, retries: int) -> Optional[float]:
    """Delay before the next attempt, s; None: no retry."""
    is_transient = (
        error.status in _RETRIED_STATUSES
        or error.code in _RETRIED_CODES
        or error.reason == "idempotency_in_progress"
    )
    if attempt >= retries or not is_transient:
        return None
    if error.retry_after is None:
        return random.random() * min(_MAX_DELAY, _BASE_DELAY * 2.0**attempt)
    return None if error.retry_after > _MAX_DELAY else error.retry_after + random.random() * _BASE_DELAY


def _next_request(request: Request, page: Mapping[str, Any]) -> Optional[Request]:
    cursor = page.get("nextCursor")
    if not isinstance(cursor, str):
        return None
    if cursor == request.get("cursor"):
        raise UntagError("the server returned the same cursor twice", 200, "bad-answer")
    rest = {name: value for name, value in request.items() if name not in ("cursor", "offset")}
    return cast(Request, {**rest, "cursor": cursor})
