"""Any number of texts through one request."""

from __future__ import annotations

import asyncio
import http.client
import json
import socket
from contextlib import closing

from serving import LINES, chunk, counters, run, serving, soon, until

from cohegraph.serve.limits import Limits
from cohegraph.serve.streaming import answers


def stream(client, content):
    """The lines that come back."""
    answer = client.post("/v1/assess/stream", content=content)
    assert answer.status_code == 200
    assert answer.headers["content-type"] == LINES
    assert answer.text == "" or answer.text.endswith("\n")
    return [json.loads(line) for line in answer.text.splitlines()]


def test_a_stream_answers_in_order_with_ids_and_numbers(client, texts, wanted):
    lines = [
        json.dumps({"id": number if number % 2 else f"n{number}", "text": text}) for number, text in enumerate(texts)
    ]
    found = stream(client, "\n".join(lines))
    assert [one.pop("line") for one in found] == list(range(1, len(texts) + 1))
    assert [one.pop("id") for one in found] == [n if n % 2 else f"n{n}" for n in range(len(texts))]
    assert found == list(wanted.values())


def test_bad_lines_are_answered_and_do_not_end_the_stream(client, shipped):
    lines = [
        b'"A dog."', b"", b"   ", b"{", b"7", b"null", b"[]", b"{}", b'{"text": 7}', b'{"text": "A.", "id": [1]}',
        b'{"text": "A.", "id": true}', b'{"text": "A.", "id": 1.5}', b"\xff\xfe", b"[" * 100_000, b"9" * 5_000, b"NaN",
        b'{"text": "A dog.", "id": null, "level": "kept out"}', b'"\\ud800"', b"\x00", b"\xef\xbb\xbf\"A dog.\"",
        b'\t{"text": "A cat."} \r', b'"The last."',
    ]  # fmt: skip
    found = {one["line"]: one for one in stream(client, b"\n".join(lines))}
    blank = {number for number, line in enumerate(lines, start=1) if not line.strip()}
    assert set(found) == set(range(1, len(lines) + 1)) - blank
    good = {lines.index(line) + 1 for line in lines if line[:8] in (b'"A dog."', b'"\\ud800"', b'"The las')}
    good |= {17, 20, 21}
    assert {number for number, one in found.items() if "error" not in one} == good
    for one in found.values():
        if "error" in one:
            assert set(one) == {"line", "error", "code"}
        else:
            assert set(one) == {"line", *shipped.assess(["A dog."])[0].to_dict()}
            assert 0 <= one["score"] <= 100
    codes = {line: found[number].get("code") for number, line in enumerate(lines, start=1) if number in found}
    assert {codes[line] for line in (b"7", b"null", b"[]", b"{}", b'{"text": 7}', b"NaN")} == {"invalid-line"}
    assert {code for line, code in codes.items() if b'"id": [' in line or b"true" in line or b"1.5" in line} == {
        "invalid-id"
    }
    assert {codes[line] for line in (b"{", b"\xff\xfe", b"[" * 100_000, b"9" * 5_000, b"\x00")} == {"not-json"}


def test_lines_may_come_in_any_pieces_and_end_in_any_way(client):
    whole = '{"id": 1, "text": "A döğ 🐕."}\r\n\r\n"A cat."\r\n{"id": 3, "text": "The last."}'.encode()
    wanted = stream(client, whole)
    assert [one["line"] for one in wanted] == [1, 3, 4]
    for size in (1, 2, 3, 7):
        pieces = (whole[start : start + size] for start in range(0, len(whole), size))
        assert list(stream(client, pieces)) == wanted
    assert list(stream(client, whole + b"\n")) == wanted
    assert stream(client, b"") == stream(client, b"\n\r\n \n") == []


def test_over_long_lines_wherever_they_stand(shipped):
    long = b'"' + b"a" * 1_500 + b'"'
    with serving(shipped, body=1_000) as client:
        for size in (1, 64, 999, 10_000):
            whole = b"\n".join([long, b'"A dog."', long * 3, long, b"", b'"A cat."', long])
            found = stream(client, (whole[start : start + size] for start in range(0, len(whole), size)))
            long_line = "line-too-long"
            assert [(one["line"], one.get("code")) for one in found] == [
                (1, long_line), (2, None), (3, long_line), (4, long_line), (6, None), (7, long_line),
            ]  # fmt: skip


def opened(client):
    """A connection on which a stream has begun."""
    sock = socket.create_connection(client.address, timeout=60)
    sock.sendall(
        b"POST /v1/assess/stream HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-ndjson\r\n"
        b"Transfer-Encoding: chunked\r\n\r\n"
    )
    return sock


def test_a_client_may_send_everything_before_it_reads_anything(shipped):
    count = 4_000
    # Both what is sent and what comes back is far more than all buffers between the two hold.
    good, bad = b'{"text": "A dog.", "id": "%s"}\n' % (b"x" * 500), b"{%s\n" % (b" " * 500)
    with serving(shipped, small_buffers=True) as client, closing(opened(client)) as sock:
        for _ in range(count // 100):
            sock.sendall(chunk(good + bad * 99))
        sock.sendall(b"0\r\n\r\n")
        answer = http.client.HTTPResponse(sock)
        answer.begin()
        found = [json.loads(one) for one in answer.read().splitlines()]
    assert [one["line"] for one in found] == list(range(1, count + 1))
    assert sum("level" in one for one in found) == count // 100


def test_a_client_may_wait_for_each_answer_before_it_sends_on(client):
    with closing(opened(client)) as sock:
        answer = http.client.HTTPResponse(sock)
        for number in range(1, 21):
            sock.sendall(chunk(b'"A dog sle') + chunk(b'eps."\n'))
            if number == 1:
                answer.begin()
            assert json.loads(answer.readline())["line"] == number
        sock.sendall(b"0\r\n\r\n")
        assert answer.read() == b""


def test_a_stream_whose_client_leaves_ends_quietly(shipped, caplog, capfd):
    with serving(shipped, queue=8, batch=2) as client:
        for _ in range(3):
            with closing(opened(client)) as sock:
                sock.sendall(chunk(b'"A dog sleeps."\n' * 30))
                sock.recv(100)
        until(lambda: client.get("/healthz").json()["waiting"] == 0)
        assert len(stream(client, '"A dog."\n' * 20)) == 20
    assert caplog.text == ""
    assert capfd.readouterr().err == ""


def test_a_client_that_leaves_before_its_answer_is_counted_as_gone(held):
    with serving(held) as client:
        with closing(socket.create_connection(client.address)) as sock:
            sock.sendall(
                b"POST /v1/assess HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 50\r\n\r\n{"
            )
            until(lambda: client.server._service.state.reading)  # the server waits for the rest of it
        until(lambda: counters(client).get('cohegraph_requests_total{route="/v1/assess",status="499"}') == 1)


def test_a_stream_that_is_broken_off_leaves_nothing_behind(held, caplog):
    """Its tasks end even where the queue between them is full, and nobody hears of the outcomes that it waited for."""

    async def endless():
        while True:
            yield b'"It is poison."\n' * 10

    async def work(batcher):
        before = asyncio.all_tasks()
        lines = answers(endless(), batcher, Limits(batch=2))
        first = asyncio.create_task(anext(lines))
        # One line is being answered, eight fill the queue, and the tenth waits for room in it.
        await soon(lambda: batcher.waiting >= 10)
        first.cancel()
        await asyncio.gather(first, return_exceptions=True)
        await asyncio.wait_for(lines.aclose(), 10)
        assert asyncio.all_tasks() == before
        held.gate.set()
        await soon(lambda: batcher.waiting == 0)

    run(held, work, batch=2)
    assert "never retrieved" not in caplog.text
