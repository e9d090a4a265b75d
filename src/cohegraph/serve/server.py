"""Runs the application: ready when it says so, and gone only when all that it took on is answered."""

from __future__ import annotations

import asyncio
import socket
from types import FrameType
from typing import Any

import uvicorn
from fastapi import FastAPI

from cohegraph.errors import CohegraphError
from cohegraph.serve.api import Service


class Server(uvicorn.Server):
    """A server that, told to stop, first says so to its clients, then answers what they have sent, then ends."""

    def __init__(self, app: FastAPI, sock: socket.socket, **options: Any) -> None:
        config = uvicorn.Config(app, log_level="warning", access_log=False, server_header=False, **options)
        super().__init__(config)
        self._service: Service = app.state.service
        self._socket = sock
        self._told: asyncio.TimerHandle | None = None

    def run_until_stopped(self) -> None:
        """Serve until SIGTERM or SIGINT."""
        self.run(sockets=[self._socket])

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Begin to stop; told twice, stop at once.

        From now on every answer closes its connection, so that a client does not send the next request into one that is
        about to close.
        """
        if self._service.state.draining:
            super().handle_exit(sig, frame)
            return
        self._service.state.draining = True
        loop = asyncio.get_running_loop()
        self._told = loop.call_later(self._service.limits.drain, super().handle_exit, sig, frame)


def bound(host: str, port: int) -> socket.socket:
    """A socket that listens, or one sentence that says why there is none."""
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        sock = socket.socket(family, socket.SOCK_STREAM)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind((host, port))
        sock.listen(2048)
    except (OSError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise CohegraphError(
            f"The server cannot listen on {host}, port {port} ({reason}): choose another --host or --port."
        ) from None
    return sock
