"""A real server for tests, the model behind a gate, and ways to wait for what others bring about."""

from __future__ import annotations

import asyncio
import json
import re
import socket
import sys
import threading
import time
from contextlib import contextmanager
from pathlib import Path

import pytest

pytest.importorskip("fastapi", reason="the extra 'serve' is not installed")
pytest.importorskip("uvicorn", reason="the extra 'serve' is not installed")
httpx = pytest.importorskip("httpx", reason="httpx is not installed")

from cohegraph.serve.api import create_app  # noqa: E402
from cohegraph.serve.batcher import Batcher  # noqa: E402
from cohegraph.serve.limits import Limits  # noqa: E402
from cohegraph.serve.page import add_page  # noqa: E402
from cohegraph.serve.server import Server, bound  # noqa: E402

PROBLEM = "application/problem+json"
LINES = "application/x-ndjson"
SECRET = "Xyzzyplugh"
COMMAND = Path(sys.executable).with_name("cohegraph")


@contextmanager
def serving(model, *, token=None, hosts=None, small_buffers=False, **limits):
    """A server on a real socket, and a client of it."""
    app = create_app(model, limits=Limits(**limits), token=token, hosts=hosts)
    add_page(app)
    server = Server(app, bound("127.0.0.1", 0))
    address = server._socket.getsockname()
    if small_buffers:  # connections have those of the socket that they come from
        server._socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 8_192)
        server._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8_192)
    thread = threading.Thread(target=server.run_until_stopped)
    thread.start()
    try:
        with httpx.Client(base_url=f"http://127.0.0.1:{address[1]}", timeout=60) as client:
            client.server, client.thread, client.address = server, thread, address
            yield client
    finally:
        server.should_exit = True
        thread.join(30)
        assert not thread.is_alive()


class Held:
    """The shipped model behind a gate, so that a test decides when it works; some texts make it fail."""

    def __init__(self, model):
        self._model = model
        self.gate, self.entered, self.batches = threading.Event(), threading.Event(), []

    def __getattr__(self, name):
        return getattr(self._model, name)

    def assess(self, documents):
        self.batches.append([one.text for one in documents])
        self.entered.set()
        assert self.gate.wait(60)
        if any("poison" in one.text for one in documents):
            raise RuntimeError(f"this cannot be assessed: {documents[0].text}")
        return self._model.assess(documents)


def assessed(model, text):
    """What the model says of a text by itself, as it is after its way through JSON."""
    return json.loads(json.dumps(model.assess([text])[0].to_dict()))


def is_problem(answer, status, words):
    """Whether an answer is a problem description with one sentence."""
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == PROBLEM
    found = answer.json()
    assert set(found) == {"type", "title", "status", "detail"}
    assert found["status"] == status
    assert re.search(words, found["detail"]), found["detail"]
    assert found["detail"].endswith(".")
    assert not found["detail"].endswith("..")
    return True


def counters(client):
    """The server's own figures, by name and labels."""
    page = client.get("/metrics").text
    return {
        name: float(value)
        for name, value in (line.rsplit(" ", 1) for line in page.splitlines() if not line.startswith("#"))
    }


def until(true, seconds=20):
    """Wait for something that another thread brings about."""
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "it did not come about in time"
        time.sleep(0.005)


async def soon(true, seconds=20):
    """`until`, on an event loop."""
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "it did not come about in time"
        await asyncio.sleep(0.005)


def run(model, work, **limits):
    """Run something with a batcher that is stopped afterwards."""

    async def all_of_it():
        found = Batcher(model, Limits(**limits))
        found.start()
        try:
            return await asyncio.wait_for(work(found), 60)
        finally:
            getattr(model, "gate", threading.Event()).set()
            await asyncio.wait_for(found.stop(), 60)

    return asyncio.run(all_of_it())


def chunk(content):
    """A piece of a body in HTTP's chunked encoding."""
    return b"%x\r\n%s\r\n" % (len(content), content)
