"""A real server for tests, the model behind a gate, and ways to wait for what others bring about."""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import re
import socket
import subprocess
import sys
import threading
import time
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

pytest.importorskip("fastapi", reason="the extra 'serve' is not installed")
pytest.importorskip("uvicorn", reason="the extra 'serve' is not installed")
httpx = pytest.importorskip("httpx", reason="httpx is not installed")

from cohegraph.serve.api import create_app  # noqa: E402
from cohegraph.serve.batcher import Batcher  # noqa: E402
from cohegraph.serve.limits import Limits  # noqa: E402
from cohegraph.serve.listening import bound  # noqa: E402
from cohegraph.serve.page import add_page  # noqa: E402
from cohegraph.serve.server import Server  # noqa: E402

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


class Process:
    """`cohegraph serve`, all that it says, and where it listens."""

    def __init__(self, *options, env=None):
        self.process = subprocess.Popen(
            [COMMAND, "serve", "--no-browser", "--port", "0", "--threads", "1", *options],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env={**os.environ, "OMP_NUM_THREADS": "1", **(env or {})},
        )  # fmt: skip
        self.said = {"stdout": "", "stderr": ""}
        self._readers = [threading.Thread(target=self._read, args=(name,), daemon=True) for name in self.said]
        for reader in self._readers:
            reader.start()
        until(lambda: self._address or self.process.poll() is not None, 120)
        assert self._address, self.said
        self.address, self.port = self._address[0], int(self._address[1])
        until(self._answers)

    @property
    def _address(self):
        """The address that it prints once it is ready."""
        return re.search(r"http://127\.0\.0\.1:(\d+)/", self.said["stderr"])

    def _read(self, name):
        for line in getattr(self.process, name):
            self.said[name] += line

    def _answers(self):
        with closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)) as connection:
            connection.request("GET", "/healthz")
            return connection.getresponse().status == 200

    def ended(self, seconds=60):
        code = self.process.wait(seconds)
        for reader in self._readers:
            reader.join(10)
        return code

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.kill()

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait(30)


def assessed(model, text):
    """What the model says of a text by itself, as it is after its way through JSON."""
    return json.loads(json.dumps(model.assess([text])[0].to_dict()))


def is_problem(answer, status, code, field=None):
    """Whether an answer is a problem description of this code, about this field."""
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == PROBLEM
    found = answer.json()
    assert set(found) == {"type", "title", "status", "code", "detail", "field"}
    assert (found["status"], found["code"], found["field"]) == (status, code, field)
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
