"""Runs the application: ready when it says so, and gone only when all that it took on is answered."""

import asyncio
import os
import socket
import time
from types import FrameType
from typing import Any

import uvicorn
from fastapi import FastAPI

from cohegraph.serve.api import Service

# Seconds within which two signals are one request to stop.
_SAME_REQUEST = 0.2
# Seconds that a server which stops waits for the first request of a connection.
_FIRST_REQUEST = 1.0
_TICK = 0.05


class Server(uvicorn.Server):
    """A server that, told to stop, first says so to its clients, then answers what they have sent, then ends."""

    def __init__(self, app: FastAPI, sock: socket.socket, **options: Any) -> None:
        config = uvicorn.Config(app, log_level="warning", access_log=False, server_header=False, **options)
        super().__init__(config)
        self._service: Service = app.state.service
        self._socket = sock
        self._told = 0.0

    def run_until_stopped(self) -> None:
        """Serve until SIGTERM or SIGINT."""
        self.run(sockets=[self._socket])

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Begin to stop; told twice, stop at once.

        From now on every answer closes its connection, so that a client does not send the next request into one that is
        about to close. The signal is not raised again once all is done, as the base class would: it was obeyed.
        """
        now = time.monotonic()
        if self._service.state.draining:
            # The same request to stop can come as two signals, to the process and to its group.
            if now - self._told > _SAME_REQUEST:
                os._exit(128 + sig)  # whatever still runs, no thread and no client is waited for
            return
        self._told = now
        limits = self._service.limits
        self._service.state.drain(limits.idle)
        asyncio.get_running_loop().call_later(limits.drain, self._end)

    def _end(self) -> None:
        self.should_exit = True

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Take on no new connections, wait for the requests of those that have just come, and then for all answers."""
        for server in self.servers:
            server.close()
        until = time.monotonic() + _FIRST_REQUEST
        # The base class closes connections without a request at once; what was sent over them may not be read yet.
        await asyncio.sleep(_TICK)
        while time.monotonic() < until and any(_is_fresh(one) for one in self.server_state.connections):
            await asyncio.sleep(_TICK)
        watch = asyncio.create_task(self._leave_stuck_clients())
        try:
            await super().shutdown(sockets)
        finally:
            watch.cancel()

    async def _leave_stuck_clients(self) -> None:
        """Break off with clients that take nothing of their answer for as long as one may send nothing."""
        since: dict[Any, tuple[int, float]] = {}
        while True:
            now = time.monotonic()
            for connection in list(self.server_state.connections):
                left = connection.transport.get_write_buffer_size()
                before, start = since.get(connection, (left, now))
                since[connection] = (left, start if left == before else now)
                if left and left == before and now - start > self._service.limits.idle:
                    connection.transport.abort()
            await asyncio.sleep(_TICK)


def _is_fresh(connection: Any) -> bool:
    return getattr(connection, "cycle", False) is None
