"""What every request passes first: the size of its body, its token, and the clock."""

from __future__ import annotations

import hmac
import time
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from cohegraph.serve.limits import Limits
from cohegraph.serve.metrics import Metrics
from cohegraph.serve.problems import problem

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
_OPEN = ("/", "/healthz")
_UNLIMITED = "/v1/assess/stream"
# The page loads nothing from elsewhere, and nobody else may show it inside their own.
_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; "
    "connect-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}


class _TooLargeError(Exception):
    pass


class Guard:
    """An ASGI application around another one."""

    def __init__(self, app: Any, *, limits: Limits, metrics: Metrics, token: str | None, state: Any) -> None:
        self._app, self._limits, self._metrics, self._token, self._state = app, limits, metrics, token, state

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Serve one request, or refuse it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        start, status = time.perf_counter(), 500

        async def sent(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message = {**message, "headers": [*message.get("headers", []), *self._headers(scope["path"])]}
            await send(message)

        try:
            await self._guarded(scope, receive, sent)
        finally:
            route = getattr(scope.get("route"), "path", "other")
            self._metrics.requests.labels(route, str(status)).inc()
            self._metrics.seconds.labels(route).observe(time.perf_counter() - start)

    def _headers(self, path: str) -> list[tuple[bytes, bytes]]:
        found = dict(_HEADERS)
        if path == "/docs":
            found.pop("Content-Security-Policy")
        if self._state.draining:
            found["Connection"] = "close"
        return [(name.lower().encode(), value.encode()) for name, value in found.items()]

    async def _guarded(self, scope: Message, receive: Receive, send: Send) -> None:
        headers = {name.lower(): value for name, value in scope["headers"]}
        path = scope["path"]
        if not self._allowed(path, headers):
            refused = problem(401, "This server needs a token: send it as 'Authorization: Bearer TOKEN'.")
            refused.headers["WWW-Authenticate"] = "Bearer"
            await refused(scope, receive, send)
            return
        most, seen = self._limits.body, 0

        async def limited() -> Message:
            nonlocal seen
            message = await receive()
            seen += len(message.get("body", b""))
            if path != _UNLIMITED and seen > most:
                raise _TooLargeError
            return message

        declared = headers.get(b"content-length", b"")
        try:
            if path != _UNLIMITED and declared.isdigit() and int(declared) > most:
                raise _TooLargeError
            await self._app(scope, limited, send)
        except _TooLargeError:
            await problem(
                413, f"The request is larger than {most} bytes: send less at once, or use /v1/assess/stream."
            )(scope, receive, send)

    def _allowed(self, path: str, headers: dict[bytes, bytes]) -> bool:
        if self._token is None or path in _OPEN or path.startswith("/page/static/"):
            return True
        scheme, _, given = headers.get(b"authorization", b"").partition(b" ")
        return scheme.lower() == b"bearer" and hmac.compare_digest(given.strip(), self._token.encode())
