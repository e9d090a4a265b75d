"""A server as people start it: its options, its end, and that it loses nothing."""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from contextlib import closing

import pytest
from material import refused
from serving import SECRET, Process, chunk, serving, until

from cohegraph.errors import MissingPartError
from cohegraph.serve.limits import Limits
from cohegraph.serve.listening import bound


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


def health(port):
    """What /healthz says: the status, what becomes of the connection, and the word for it."""
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=60)) as connection:
        connection.request("GET", "/healthz")
        answer = connection.getresponse()
        return answer.status, answer.getheader("connection"), json.loads(answer.read())["status"]


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
        until(lambda: sum(customer.seen[200] for customer in customers) > 32)
        server.process.send_signal(signal.SIGTERM)
        streamer.sendall(chunk(line * 20))
        until(lambda: health(server.port)[0] == 503)
        assert health(server.port) == (503, "close", "stopping")
        assert server.process.poll() is None
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
        until(lambda: health(server.port)[0] == 503)
        until(lambda: time.monotonic() > started + 0.5)  # later than two signals that are one request
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
        until(lambda: any(one.transport.get_write_buffer_size() for one in client.server.server_state.connections))
        loop = client.server._service.batcher._loop
        loop.call_soon_threadsafe(client.server.handle_exit, signal.SIGINT, None)
        client.thread.join(20)
        assert not client.thread.is_alive()
        sock.close()


def test_a_port_in_use_is_refused(one_sentence):
    with closing(bound("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert str(port) in one_sentence("serve", "--no-browser", "--port", port)
        with refused("cannot-listen"):
            bound("127.0.0.1", port)


@pytest.mark.parametrize("host", ["192.0.2.1", "no such host", "x" * 80, "é" * 80, "999.1.1.1"])
def test_a_host_that_is_none_of_this_machine_is_refused(host):
    with refused("cannot-listen"):
        bound(host, 0)


def test_a_missing_part_is_told_before_anything_is_served(shipped, failing, tmp_path):
    (tmp_path / "encoder").mkdir()
    error = failing("serve", "--no-browser", "--port", 0, "--encoder", tmp_path / "encoder")
    assert isinstance(error, MissingPartError)


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"texts": 0}, "bad-limit"),
        ({"body": "much"}, "bad-limit"),
        ({"drain": float("nan")}, "bad-limit"),
        ({"queue": True}, "bad-limit"),
        ({"": 1}, "no-limit"),
        ({"texs": 3}, "no-limit"),
    ],
)
def test_limits_are_checked(change, code):
    with refused(code):
        Limits.of(change)


WRONG_OPTIONS = {
    "no-limit": ["--limit", "texs=3"],
    "bad-limit": ["--limit", "texts"],
    "bad-token": ["--token", "two words"],
    "no-host": ["--host", " "],
    "no-model": ["--model", "no-such-model"],
    "cannot-listen": ["--host", "999.1.1.1"],
}


def test_options_are_checked_before_anything_heavy_is_imported():
    """All in one process, which has imported neither torch nor FastAPI when it has refused the last of them."""
    program = """
import json, sys
from cohegraph.cli.app import app
from cohegraph.errors import CohegraphError
found = []
for options in json.loads(sys.argv[1]):
    try:
        app(["serve", "--no-browser", *options], standalone_mode=False)
    except CohegraphError as error:
        found.append(error.code)
print(json.dumps([found, [name for name in ("torch", "fastapi", "uvicorn") if name in sys.modules]]))
"""
    options = json.dumps(list(WRONG_OPTIONS.values()))
    done = subprocess.run([sys.executable, "-c", program, options], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == [list(WRONG_OPTIONS), []]


@pytest.mark.parametrize("token", ["", " ", "two words", "é", "\udcff"])
def test_a_token_that_cannot_be_sent_is_refused(token):
    from cohegraph.cli.serve import serve

    with refused("bad-token"):
        serve(token=token, browser=False)


@pytest.mark.parametrize("options", [["--port", "99999"], ["--limt", "3"]])
def test_options_that_do_not_exist_or_are_out_of_range(one_sentence, options):
    one_sentence("serve", "--no-browser", *options)


@pytest.mark.parametrize("missing", ["fastapi", "uvicorn", "prometheus_client"])
def test_without_the_extra_it_names_what_is_missing(monkeypatch, missing):
    from cohegraph.cli.serve import serve

    monkeypatch.setitem(sys.modules, missing, None)
    with refused("missing-part", MissingPartError) as caught:
        serve(browser=False)
    assert missing in str(caught.value)
