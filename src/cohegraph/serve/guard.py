"""What every request passes first: whom it is meant for, its token, the size of its body, and the clock."""

import asyncio
import hmac
import time
from collections.abc import Collection
from dataclasses import dataclass, field

from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from cohegraph.serve.limits import Limits
from cohegraph.serve.metrics import Metrics
from cohegraph.serve.problems import ProblemError, failed

STREAM = "/v1/assess/stream"
OPEN = ("/", "/healthz")
# What metrics call a request whose client left before the answer, as other servers do.
_GONE = 499
_LONGEST_NAME = 80
# The page loads nothing from elsewhere, and nobody else may show it inside their own.
_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; "
    "connect-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}


@dataclass
class State:
    """What changes while a server runs."""

    draining: bool = False
    # One for each client that is waited for to send more.
    reading: set[asyncio.Timeout] = field(default_factory=set)

    def drain(self, idle: float) -> None:
        """Begin to stop: from now on a client that sends nothing for so many seconds is not waited for."""
        self.draining = True
        for waiting in self.reading:
            waiting.reschedule(asyncio.get_running_loop().time() + idle)


class Guard:
    """An ASGI application around another one."""

    def __init__(
        self,
        app: ASGIApp,
        limits: Limits,
        metrics: Metrics,
        state: State,
        token: str | None,
        hosts: Collection[str] | None,
    ) -> None:
        self._app, self._limits, self._metrics, self._state, self._token = app, limits, metrics, state, token
        self._hosts = None if hosts is None else {host.lower() for host in hosts}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request, or refuse it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        if scope["method"] == "HEAD":  # the server below sends no body of its answer
            scope = {**scope, "method": "GET"}
        start, status, gone = time.perf_counter(), 0, False

        async def received() -> Message:
            nonlocal gone
            message = await self._received(scope["path"], receive)
            gone = gone or (message["type"] == "http.disconnect" and not status)
            return message

        async def sent(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message = {**message, "headers": [*message.get("headers", []), *self._headers()]}
            await send(message)

        try:
            await self._guarded(scope, received, sent)
        except ClientDisconnect:
            gone = True
        except Exception as error:
            # Here and not in the server, which would log its message. An answer that has begun stays incomplete, and
            # the server closes its connection.
            problem = failed(error)
            if not status:
                await problem.answer()(scope, receive, sent)
        finally:
            route = getattr(scope.get("route"), "path", "other")
            self._metrics.requests.labels(route, str(_GONE if gone or not status else status)).inc()
            self._metrics.seconds.labels(route).observe(time.perf_counter() - start)

    def _headers(self) -> list[tuple[bytes, bytes]]:
        found = dict(_HEADERS)
        if self._state.draining:
            found["Connection"] = "close"
        return [(name.lower().encode(), value.encode()) for name, value in found.items()]

    async def _received(self, path: str, receive: Receive) -> Message:
        """The next part of a request; of a server that stops, a client that sends nothing has sent all it will."""
        state = self._state
        try:
            async with asyncio.timeout(self._limits.idle if state.draining else None) as waiting:
                state.reading.add(waiting)
                try:
                    return await receive()
                finally:
                    state.reading.discard(waiting)
        except TimeoutError:
            if path == STREAM:  # what it has sent so far is answered
                return {"type": "http.request", "body": b"", "more_body": False}
            return {"type": "http.disconnect"}

    async def _guarded(self, scope: Scope, receive: Receive, send: Send) -> None:
        most, seen, unlimited = self._limits.body, 0, scope["path"] == STREAM
        remedy = f"send less at once, or use {STREAM}"
        too_large = ProblemError(413, "body-too-large", f"The request is larger than {most} bytes: {remedy}.")

        async def limited() -> Message:
            nonlocal seen
            message = await receive()
            seen += len(message.get("body", b""))
            if seen > most and not unlimited:
                raise too_large
            return message

        headers = {name.lower(): value for name, value in scope["headers"]}
        declared = headers.get(b"content-length", b"").lstrip(b"0")
        problem = self._refusal(scope["method"], scope["path"], headers)
        if declared.isdigit() and (len(declared) > len(str(most)) or int(declared) > most) and not unlimited:
            problem = problem or too_large
        await (self._app(scope, limited, send) if problem is None else problem.answer()(scope, receive, send))

    def _refusal(self, method: str, path: str, headers: dict[bytes, bytes]) -> ProblemError | None:
        """Why a request is refused: a page of another site may not use the browser of whoever runs this server."""
        name = _host(headers.get(b"host", b"").decode("latin-1"))
        if self._hosts is not None and name not in self._hosts:
            detail = (
                f"This server does not go by the name '{name[:_LONGEST_NAME]}': call it by the address that it printed "
                "when it started, or start it with --allow-host and that name."
            )
            return ProblemError(421, "unknown-host", detail)
        if method != "GET" and headers.get(b"sec-fetch-site") == b"cross-site":
            detail = "A page of another site may not use this server: call it from a program."
            return ProblemError(403, "cross-site", detail)
        if not self._allowed(path, headers):
            detail = "This server needs a token: send it as 'Authorization: Bearer TOKEN'."
            return ProblemError(401, "token-required", detail, headers={"WWW-Authenticate": "Bearer"})
        return None

    def _allowed(self, path: str, headers: dict[bytes, bytes]) -> bool:
        if self._token is None or path in OPEN or path.startswith("/page/static/"):
            return True
        scheme, _, given = headers.get(b"authorization", b"").partition(b" ")
        return scheme.lower() == b"bearer" and hmac.compare_digest(given.strip(), self._token.encode())


def _host(header: str) -> str:
    """The name in a Host header, without the port."""
    name = header.rpartition("]")[0].removeprefix("[") if header.startswith("[") else header.partition(":")[0]
    return name.lower().rstrip(".")
