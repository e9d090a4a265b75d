"""A server as people start it: its options, its end, and that it loses nothing."""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from contextlib import closing

import pytest
from serving import COMMAND, SECRET, chunk, serving, until

from cohegraph.errors import CohegraphError
from cohegraph.serve.limits import Limits
from cohegraph.serve.server import bound


class Process:
    """`cohegraph serve`, all that it says, and where it listens."""

    def __init__(self, *options, env=None):
        self.process = subprocess.Popen(
            [COMMAND, "serve", "--no-browser", "--port", "0", "--threads", "1", *options],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, **(env or {})},
        )  # fmt: skip
        self.said = {"stdout": "", "stderr": ""}
        self._readers = [threading.Thread(target=self._read, args=(name,), daemon=True) for name in self.said]
        for reader in self._readers:
            reader.start()
        until(lambda: "Ready:" in self.said["stderr"] or self.process.poll() is not None, 120)
        found = re.search(r"Ready: http://127\.0\.0\.1:(\d+)/", self.said["stderr"])
        assert found, self.said
        self.port = int(found[1])
        until(self._answers)

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
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait(30)


class Customer(threading.Thread):
    """Sends requests over connections that it keeps as long as the server does, and notes what became of each."""

    def __init__(self, port, number):
        super().__init__(daemon=True)
        self.port, self.number = port, number
        self.seen = Counter()
        self.stop = threading.Event()

    def run(self):
        connection = None
        while not self.stop.is_set():
            fresh = connection is None
            if fresh:
                connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
                try:
                    connection.connect()
                except OSError:
                    self.seen["refused"] += 1
                    return
            connection = self._ask(connection, fresh)

    def _ask(self, connection, fresh):
        where = "on a fresh connection" if fresh else "on a kept connection"
        path, body = (
            ("/v1/explain", {"text": f"{SECRET} sees a dog. The dog sleeps.", "what_if": 1})
            if self.number % 4 == 0
            else ("/v1/assess", {"text": f"{SECRET} sees a dog. The dog sleeps."})
        )
        try:
            connection.request("POST", path, json.dumps(body), {"Content-Type": "application/json"})
            answer = connection.getresponse()
        except (OSError, http.client.HTTPException):
            self.seen[f"no answer {where}"] += 1
            return None
        try:
            whole = json.loads(answer.read())
        except (OSError, ValueError, http.client.HTTPException):
            self.seen["broken answer"] += 1
            return None
        self.seen[answer.status] += 1
        self.seen["wrong answer"] += "model" not in whole
        if answer.will_close:
            connection.close()
            return None
        return connection


@pytest.mark.skipif(os.name == "nt", reason="there is no SIGTERM")
def test_sigterm_under_load_loses_nothing(shipped):
    with Process("--limit", "drain=1") as server:
        customers = [Customer(server.port, number) for number in range(16)]
        for customer in customers:
            customer.start()
        line = b'"Xyzzyplugh sees a dog."\n'
        streamer = socket.create_connection(("127.0.0.1", server.port), timeout=60)
        streamer.sendall(
            b"POST /v1/assess/stream HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
            + chunk(line * 20)
        )
        until(lambda: sum(customer.seen[200] for customer in customers) > 64)
        server.process.send_signal(signal.SIGTERM)
        streamer.sendall(chunk(line * 20))
        time.sleep(0.2)
        assert server.process.poll() is None
        with closing(http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)) as connection:
            connection.request("GET", "/healthz")
            answer = connection.getresponse()
            assert (answer.status, answer.getheader("connection")) == (503, "close")
            assert json.loads(answer.read())["status"] == "stopping"
        streamer.sendall(chunk(line) + b"0\r\n\r\n")
        answer = http.client.HTTPResponse(streamer)
        answer.begin()
        assert len(answer.read().splitlines()) == 41
        streamer.close()
        code = server.ended()
        for customer in customers:
            customer.stop.set()
            customer.join(60)
        seen = sum((customer.seen for customer in customers), Counter())
        print(dict(seen))
        # On a fresh connection there is an instant at which the system has let a client in and the server has not.
        assert seen.pop("no answer on a fresh connection", 0) <= 2
        assert set(+seen) <= {200, 429, "refused"}, seen
        assert seen["refused"] <= 16
        assert code == 0
    assert SECRET not in str(server.said)
    assert server.said["stdout"] == ""
    assert server.said["stderr"].count("\n") == 1, server.said["stderr"]


@pytest.mark.skipif(os.name == "nt", reason="there is no SIGTERM")
def test_told_twice_a_server_stops_at_once(shipped):
    with Process("--limit", "drain=30") as server:
        started = time.monotonic()
        server.process.send_signal(signal.SIGTERM)
        server.process.send_signal(signal.SIGTERM)  # the same request, to the process and to its group
        time.sleep(0.5)
        assert server.process.poll() is None
        server.process.send_signal(signal.SIGTERM)
        assert server.ended(10) == 128 + signal.SIGTERM
        assert time.monotonic() - started < 10


def test_a_silent_client_does_not_hold_a_server_that_is_told_to_stop(shipped):
    with serving(shipped, drain=0, idle=0.3) as client:
        sockets = [socket.create_connection(client.address, timeout=30) for _ in range(3)]
        sockets[0].sendall(
            b"POST /v1/assess/stream HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n" + chunk(b'"A dog."\n')
        )
        sockets[1].sendall(b"POST /v1/assess HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{")
        answer = http.client.HTTPResponse(sockets[0])
        answer.begin()
        loop = client.server._service.batcher._loop
        loop.call_soon_threadsafe(client.server.handle_exit, signal.SIGINT, None)
        assert len(answer.read().splitlines()) == 1, "what was sent is answered, and the answer is complete"
        client.thread.join(20)
        assert not client.thread.is_alive()
        for sock in sockets:
            sock.close()


def test_a_client_that_takes_nothing_does_not_hold_a_server_that_is_told_to_stop(shipped):
    with serving(shipped, idle=0.3, small_buffers=True) as client:
        sock = socket.socket()
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2_048)
        sock.connect(client.address)
        lines = b"".join(b'{"text": 5, "id": "%s"}\n' % (b"x" * 4_000) for _ in range(1_000))
        head = b"POST /v1/assess/stream HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(lines)
        sock.sendall(head + lines)
        time.sleep(0.2)
        loop = client.server._service.batcher._loop
        loop.call_soon_threadsafe(client.server.handle_exit, signal.SIGINT, None)
        client.thread.join(20)
        assert not client.thread.is_alive()
        sock.close()


def sentence(*options, **env):
    """The one sentence with which the command ends, in a narrow place where nothing is wrapped."""
    done = subprocess.run(
        [COMMAND, "serve", "--no-browser", *options], capture_output=True, text=True, timeout=120,
        env={**os.environ, **env},
    )  # fmt: skip
    assert done.returncode == 2, done
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    assert done.stderr.startswith("cohegraph: ")
    assert done.stderr.endswith(".\n")
    return done.stderr


def test_a_port_in_use_is_told_in_a_sentence():
    with closing(bound("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        assert "cannot listen on 127.0.0.1, port" in sentence("--port", port)
        for host in ("192.0.2.1", "no such host", "x" * 80, "é" * 80, "999.1.1.1"):
            with pytest.raises(CohegraphError, match=r"cannot listen .*choose another --host or --port\."):
                bound(host, 0)


def test_wrong_options_are_told_in_a_sentence():
    assert "There is no limit 'texs': choose from body, texts," in sentence("--limit", "texs=3")


def test_options_out_of_range_are_told_in_a_sentence():
    assert "65535" in sentence("--port", "99999")
    assert "--limt" in sentence("--limt", "3")
    assert "There is no host" in sentence("--host", " ")


def test_a_missing_part_is_told_before_anything_is_served(shipped):
    assert "The encoder 'no-such-encoder' cannot be loaded" in sentence(
        "--port", "0", "--encoder", "no-such-encoder", HF_HUB_OFFLINE="1"
    )


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"texts": 0}, "The limit texts=0 is not valid: it must be 1 or more"),
        ({"body": "much"}, "The limit body=much is not valid: "),
        ({"drain": float("nan")}, "The limit drain=nan is not valid: "),
        ({"": 1}, "There is no limit ''"),
        ({"queue": True}, "The limit queue=True is not valid: it takes no truth value"),
    ],
)
def test_limits_are_checked(change, words):
    with pytest.raises(CohegraphError, match=words) as caught:
        Limits.of(change)
    assert re.search(r"[^.]\.$", str(caught.value))


def test_options_are_checked_before_anything_is_loaded(monkeypatch):
    from cohegraph.cli.serve import serve

    monkeypatch.setattr("cohegraph.systems.system_model.load_model", lambda *_, **__: pytest.fail("it was loaded"))
    with pytest.raises(CohegraphError, match="'texts' is not a limit: write NAME=VALUE, such as sentences=500"):
        serve(limit=["texts"], browser=False)
    for token in ("", " ", "two words", "é", "\udcff"):
        with pytest.raises(CohegraphError, match="The token cannot be sent"):
            serve(token=token, browser=False)


@pytest.mark.parametrize("missing", ["fastapi", "uvicorn", "prometheus_client"])
def test_without_the_extra_it_says_what_to_install(monkeypatch, missing):
    from cohegraph.cli.serve import serve

    for name in [name for name in sys.modules if name.startswith("cohegraph.serve") or name.split(".")[0] == missing]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(CohegraphError, match=rf"needs the package '{missing}'.*pip install \"cohegraph\[serve\]\"\."):
        serve(browser=False)
