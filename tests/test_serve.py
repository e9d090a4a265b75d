"""The server: what it answers, what it refuses and how, that it loses nothing, and that it ends as it should."""

from __future__ import annotations

import asyncio
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
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

pytest.importorskip("fastapi", reason="the extra 'serve' is not installed")
pytest.importorskip("uvicorn", reason="the extra 'serve' is not installed")
httpx = pytest.importorskip("httpx", reason="httpx is not installed")

from cohegraph.errors import CohegraphError  # noqa: E402
from cohegraph.serve import batcher as batcher_module  # noqa: E402
from cohegraph.serve.api import create_app  # noqa: E402
from cohegraph.serve.batcher import Batcher, StoppedError, TooBusyError, TooLongError  # noqa: E402
from cohegraph.serve.limits import Limits  # noqa: E402
from cohegraph.serve.page import add_page  # noqa: E402
from cohegraph.serve.server import Server, bound  # noqa: E402
from cohegraph.serve.streaming import answers  # noqa: E402

PROBLEM = "application/problem+json"
LINES = "application/x-ndjson"
SECRET = "Xyzzyplugh"
COMMAND = Path(sys.executable).with_name("cohegraph")
STRANGE = {
    "empty": "",
    "white space": " \n\t \r\n ",
    "NUL": "The dog\x00 sleeps. It dreams\x00.",
    "control": "A dog\x1b[31m sleeps.\x7f\x85 It dreams.",
    "emoji": "The 🐕‍🦺 sleeps 😴. It 💭.",
    "a long word": "a" * 2_000,
    "German": "Der Hund schläft. Er träumt von einem Garten. Im Garten steht ein Baum.",
    "Chinese": "狗在花园里睡觉。它梦见一棵树。",
    "Arabic": "الكلب ينام في الحديقة. إنه يحلم.",
    "one mark": ".",
    "no spaces": "dog.cat.house." * 50,
}


@pytest.fixture(scope="module")
def texts(starter):
    return [one.text for one in starter][:12]


@pytest.fixture(scope="module")
def wanted(shipped, texts):
    """What the model says of each text by itself."""
    return {text: assessed(shipped, text) for text in texts}


@contextmanager
def serving(model, *, token=None, small_buffers=False, **limits):
    """A server on a real socket, and a client of it."""
    app = create_app(model, limits=Limits(**limits), token=token)
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


@pytest.fixture(scope="module")
def client(shipped):
    with serving(shipped) as found:
        yield found


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


@pytest.fixture
def held(shipped):
    return Held(shipped)


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


# What it answers


def test_one_text_is_assessed_as_by_the_model(client, shipped, texts, wanted):
    for text in texts[:6]:
        answer = client.post("/v1/assess", json={"text": text})
        assert answer.status_code == 200
        assert answer.json() == {"model": shipped.name_, "results": [wanted[text]]}


def test_many_texts_are_assessed_in_their_order(client, texts, wanted):
    answer = client.post("/v1/assess", json={"texts": texts})
    assert answer.json()["results"] == list(wanted.values())


def test_in_a_crowd_every_client_gets_its_own_answer_to_the_last_digit(client, texts, wanted):
    def ask(number):
        text = texts[number % len(texts)]
        return text, client.post("/v1/assess", json={"text": text}).json()["results"][0]

    before = counters(client)
    with ThreadPoolExecutor(16) as pool:
        found = list(pool.map(ask, range(48)))
    assert all(result == wanted[text] for text, result in found)
    after = counters(client)
    scored = after["cohegraph_texts_total"] - before["cohegraph_texts_total"]
    batches = after["cohegraph_batch_texts_count"] - before["cohegraph_batch_texts_count"]
    assert scored == 48
    assert batches < 48, "texts of several clients are scored together"
    asked = 'cohegraph_requests_total{route="/v1/assess",status="200"}'
    assert after[asked] - before[asked] == 48
    assert after["cohegraph_waiting_texts"] == 0


def test_an_explanation_is_that_of_the_model_and_its_shares_add_up(client, shipped, texts):
    found = client.post("/v1/explain", json={"text": texts[0], "what_if": 1}).json()
    assert found == shipped.explain(texts[0], what_if=1).to_dict()
    shares = found["shares"]
    for level, logit in shares["logits"].items():
        parts = shares["text"][level] + sum(one["logits"][level] for one in shares["patterns"])
        assert parts == pytest.approx(logit, abs=1e-5)


def test_sentences_to_try_are_chosen_by_number(client, texts):
    found = client.post("/v1/explain", json={"text": texts[0], "what_if": [2]}).json()
    assert [one["number"] for one in found["sentences"] if one["what_if"]] == [2]
    answer = client.post("/v1/explain", json={"text": "One dog sleeps.", "what_if": [7]})
    assert is_problem(answer, 422, "There is no sentence 7")


def test_explanations_as_page_and_picture(client, texts):
    page = client.post("/v1/explain", params={"format": "html"}, json={"text": texts[0], "what_if": 0})
    assert page.headers["content-type"].startswith("text/html")
    assert page.text.startswith("<!")
    picture = client.post("/v1/explain", params={"format": "svg"}, json={"text": texts[0]})
    assert picture.headers["content-type"].startswith("image/svg+xml")
    assert picture.text.startswith("<svg")


def test_versions_are_compared(client, shipped, texts):
    found = client.post("/v1/compare", json={"before": texts[0], "after": texts[1]}).json()
    assert found["before"] == shipped.explain(texts[0], what_if=0).to_dict()
    assert found["after"]["verdict"] == shipped.explain(texts[1], what_if=0).to_dict()["verdict"]
    same = client.post("/v1/compare", json={"before": texts[0], "after": texts[0]}).json()["comparison"]
    assert same["score_change"] == 0
    assert same["added"] == same["removed"] == same["new_links"] == []


def test_the_model_and_the_limits_are_told(client, shipped):
    found = client.get("/v1/model").json()
    assert found["name"] == shipped.name_
    assert found["levels"] == list(shipped.levels_)
    assert found["limits"] == Limits().model_dump()
    assert client.get("/healthz").json() == {"status": "ready", "waiting": 0}


@pytest.mark.parametrize("name", STRANGE)
def test_strange_texts_are_served(client, shipped, name):
    text = STRANGE[name]
    answer = client.post("/v1/assess", json={"text": text})
    assert answer.json()["results"] == [assessed(shipped, text)]
    for kind in ("json", "html", "svg"):
        answer = client.post("/v1/explain", params={"format": kind}, json={"text": text, "what_if": 1})
        assert answer.status_code == 200, answer.text
    assert client.post("/v1/compare", json={"before": text, "after": text}).status_code == 200
    lines = client.post("/v1/assess/stream", content=json.dumps(text) + "\n").text.splitlines()
    assert json.loads(lines[0]) == {"line": 1, **assessed(shipped, text)}


def test_half_of_a_character_is_served_as_the_mark_for_it(client, shipped):
    body = b'{"text": "A dog \\ud83d sleeps.", "what_if": 1}'
    headers = {"Content-Type": "application/json"}
    found = client.post("/v1/explain", content=body, headers=headers)
    assert found.status_code == 200
    assert found.json()["text"] == "A dog \ufffd sleeps."
    one = client.post("/v1/assess", content=b'{"text": "A dog \\ud83d sleeps."}', headers=headers)
    lines = client.post("/v1/assess/stream", content=b'{"id": "\\ud83d", "text": "A dog \\ud83d sleeps."}').text
    streamed = json.loads(lines)
    assert streamed.pop("id") == "\ud83d"
    assert streamed == {"line": 1, **one.json()["results"][0]}
    assert one.json()["results"][0] == assessed(shipped, "A dog \ufffd sleeps.")


# What it refuses


@pytest.mark.parametrize("path", ["/v1/assess", "/v1/explain", "/v1/compare", "/page/explanation", "/page/comparison"])
@pytest.mark.parametrize(
    ("body", "status", "words"),
    [
        (b"", 422, "The body is not valid: Field required"),
        (b"{", 400, "not JSON from character 1 on"),
        (b"\xff\xfe\xfa", 400, "cannot be read as JSON"),
        (b'{"text": "\xff"}', 400, "cannot be read as JSON"),
        (b"[" * 100_000, 400, "cannot be read as JSON"),
        (b'{"text": ' + b"[" * 900 + b"]" * 900 + b"}", 422, "not valid"),
        (b"9" * 5_000, 400, "cannot be read as JSON"),
        (b"NaN", 422, "The body is not valid"),
        (b"null", 422, "not valid"),
        (b"[]", 422, "The body is not valid"),
        (b'"A text."', 422, "The body is not valid"),
        (b"{}", 422, "The field '(text|before)' is not valid: Field required"),
        (b'{"\\ud800": 1}', 422, "not valid"),
    ],
)
def test_bodies_that_are_nothing_are_refused(client, path, body, status, words):
    answer = client.post(path, content=body, headers={"Content-Type": "application/json"})
    assert is_problem(answer, status, words)


@pytest.mark.parametrize(
    ("path", "body", "words"),
    [
        ("/v1/assess", {"text": None}, "The field 'text' is not valid: Input should be a valid string"),
        ("/v1/assess", {"text": 7}, "The field 'text' is not valid: Input should be a valid string"),
        ("/v1/assess", {"texts": "A text."}, "The field 'texts' is not valid: Input should be a valid list"),
        ("/v1/assess", {"texts": []}, "The field 'texts' is not valid: List should have at least 1 item"),
        ("/v1/assess", {"texts": ["A text.", 7]}, r"The field 'texts\.1' is not valid: Input should be a valid string"),
        ("/v1/assess", {"text": "A text.", "texts": ["A text."]}, "The field 'text' is not valid: Extra inputs"),
        ("/v1/assess", {"text": "A text.", "level": 1}, "The field 'level' is not valid: Extra inputs"),
        ("/v1/assess", {"text": "A text.", "x" * 5_000: 1}, "The field 'x{80}' is not valid: Extra inputs"),
        ("/v1/assess", {"text": "A text.", "\ud800": 1}, "is not valid: "),
        ("/v1/assess", {"text": "A text.", "\x00\n🐕": 1}, "The field '\x00\n🐕' is not valid: Extra inputs"),
        ("/v1/explain", {"text": "A text.", "what_if": -1}, "The field 'what_if' is not valid: Input should be gr"),
        ("/v1/explain", {"text": "A text.", "what_if": 51}, "The field 'what_if' is not valid: Input should be less"),
        ("/v1/explain", {"text": "A text.", "what_if": True}, "The field 'what_if' is not valid: Input should be a v"),
        ("/v1/explain", {"text": "A text.", "what_if": 1.5}, "The field 'what_if' is not valid: Input should be a v"),
        ("/v1/explain", {"text": "A text.", "what_if": "all"}, "The field 'what_if' is not valid: Input should be a v"),
        ("/v1/explain", {"text": "A text.", "what_if": [0]}, r"The field 'what_if\.0' is not valid: Input should be g"),
        ("/v1/explain", {"text": "A text.", "what_if": [1] * 51}, "The field 'what_if' is not valid: List should have"),
        ("/v1/explain", {"text": "A text.", "what_if": 10**40}, "The field 'what_if' is not valid: "),
        ("/v1/explain?format=pdf", {"text": "A text."}, "The field 'format' is not valid: Input should be 'json'"),
        ("/v1/compare", {"before": "A text."}, "The field 'after' is not valid: Field required"),
    ],
)
def test_wrong_fields_are_named(client, path, body, words):
    body = json.dumps(body).encode()
    assert is_problem(client.post(path, content=body, headers={"Content-Type": "application/json"}), 422, words)


def test_complaints_do_not_repeat_texts(client):
    for body in ({"text": [SECRET]}, {"texts": {SECRET: 1}}, {"text": {"a": SECRET}}, {"texts": [[SECRET]]}):
        assert SECRET not in client.post("/v1/assess", json=body).text


def test_a_body_that_is_not_declared_as_json_is_refused(client):
    for headers in ({}, {"Content-Type": "text/plain"}, {"Content-Type": "application/x-www-form-urlencoded"}):
        answer = client.post("/v1/assess", content=b'{"text": "A dog."}', headers=headers)
        assert is_problem(answer, 415, "Content-Type: application/json")
    answer = client.post(
        "/v1/assess", content=b'{"text": "A dog."}', headers={"Content-Type": "application/json; charset=utf-8"}
    )
    assert answer.status_code == 200


def test_unknown_addresses_and_methods(client):
    for path in ("/v2/assess", "/v1", "/page/static/none.js", "/v1/assess/../../etc/passwd"):
        assert is_problem(client.get(path), 404, "There is nothing at this address")
    answer = client.get("/v1/assess")
    assert is_problem(answer, 405, "does not take GET: use POST")
    assert answer.headers["allow"] == "POST"
    for method in ("PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"):
        assert is_problem(client.request(method, "/v1/model"), 405, f"does not take {method}: use GET")
    assert client.head("/v1/model").status_code == 405


def test_limits_on_texts_and_sentences(shipped):
    with serving(shipped, texts=3, sentences=2) as client:
        assert client.post("/v1/assess", json={"texts": ["A dog."] * 3}).status_code == 200
        answer = client.post("/v1/assess", json={"texts": ["A dog."] * 4})
        assert is_problem(answer, 413, "There are 4 texts, and 3 is the most: use /v1/assess/stream")
        long = "A dog sleeps. A cat sleeps. A tree grows."
        answer = client.post("/v1/assess", json={"text": long})
        assert is_problem(answer, 422, "^It has 3 sentences, and 2 is the most")
        answer = client.post("/v1/assess", json={"texts": ["A dog sleeps.", long]})
        assert is_problem(answer, 422, "^Text 2: It has 3 sentences")
        assert is_problem(client.post("/v1/explain", json={"text": long}), 422, "It has 3 sentences")
        assert is_problem(client.post("/v1/compare", json={"before": "", "after": long}), 422, "It has 3 sentences")
        lines = client.post("/v1/assess/stream", content=f"{json.dumps(long)}\n{json.dumps('A dog sleeps.')}\n").text
        first, second = map(json.loads, lines.splitlines())
        assert "3 sentences" in first["error"]
        assert second["counts"]["sentences"] == 1


def test_more_texts_than_can_ever_wait_are_too_many_and_not_too_busy(shipped):
    with serving(shipped, queue=2) as client:
        answer = client.post("/v1/assess", json={"texts": ["A dog."] * 3})
        assert is_problem(answer, 413, "There are 3 texts, and 2 is the most")
        found = client.post("/v1/explain", json={"text": "A dog sleeps. A cat sleeps. A tree grows.", "what_if": 3})
        assert found.status_code == 200


def test_bodies_that_are_too_large(shipped):
    with serving(shipped, body=1_000) as client:
        body = json.dumps({"text": "a " * 1_000}).encode()
        headers = {"Content-Type": "application/json"}
        for path in ("/v1/assess", "/v1/explain", "/v1/compare", "/page/explanation"):
            declared = client.post(path, content=body, headers=headers)
            assert is_problem(declared, 413, "larger than 1000 bytes")
            pieces = (body[start : start + 100] for start in range(0, len(body), 100))
            undeclared = client.post(path, content=pieces, headers=headers)
            assert "content-length" not in undeclared.request.headers
            assert is_problem(undeclared, 413, "larger than 1000 bytes")
        fits = b'{"text": "' + b"a" * (1_000 - 12) + b'"}'
        assert len(fits) == 1_000
        assert client.post("/v1/assess", content=fits, headers=headers).status_code == 200
        lines = client.post("/v1/assess/stream", content=b'"' + b"a" * 999 + b'"\n' + b'"A dog."\n').text.splitlines()
        assert "longer" in json.loads(lines[0])["error"]
        assert json.loads(lines[1])["line"] == 2


def test_a_length_that_is_no_sensible_number_is_too_large(shipped):
    """A server would refuse it; the application must not rely on that."""
    app = create_app(shipped, limits=Limits(body=1_000))

    async def ask():
        sent = []
        scope = {
            "type": "http", "method": "POST", "path": "/v1/assess", "query_string": b"", "root_path": "",
            "headers": [(b"content-length", b"9" * 5_000), (b"content-type", b"application/json")],
        }  # fmt: skip

        async def send(message):
            sent.append(message)

        await app(scope, None, send)
        return sent[0]["status"]

    assert asyncio.run(ask()) == 413


def test_a_full_queue_turns_away_and_says_when_to_come_again(held):
    with serving(held, queue=3, batch=1) as client, ThreadPoolExecutor(3) as pool:
        waiting = [pool.submit(client.post, "/v1/assess", json={"text": f"Dog {number}."}) for number in range(3)]
        until(lambda: client.get("/healthz").json()["waiting"] == 3)
        for path, body in (
            ("/v1/assess", {"text": "One more dog."}),
            ("/v1/explain", {"text": "One more dog."}),
            ("/v1/compare", {"before": "One more dog.", "after": ""}),
            ("/page/explanation", {"text": "One more dog."}),
        ):
            answer = client.post(path, json=body)
            assert is_problem(answer, 429, "Too many texts are waiting: try again")
            assert int(answer.headers["retry-after"]) >= 1
        held.gate.set()
        assert [one.result().status_code for one in waiting] == [200] * 3
        assert client.post("/v1/assess", json={"text": "One more dog."}).status_code == 200
        assert counters(client)['cohegraph_requests_total{route="/v1/assess",status="429"}'] == 1


def test_a_failure_of_the_server_is_a_problem_description_without_the_text(held, caplog):
    held.gate.set()
    with serving(held) as client:
        answer = client.post("/v1/assess", json={"text": f"{SECRET} is poison."})
        assert is_problem(answer, 500, "The server failed at this")
        lines = client.post("/v1/assess/stream", content=f'"{SECRET} is poison."\n"A dog."\n').text.splitlines()
        assert "failed" in json.loads(lines[0])["error"]
        assert json.loads(lines[1])["counts"]["words"] == 2
        assert client.post("/v1/assess", json={"text": "A dog."}).status_code == 200
    assert "RuntimeError" in caplog.text
    assert "batcher.py" in caplog.text
    assert SECRET not in caplog.text


def test_a_token_is_asked_for_everywhere_but_where_it_cannot_be_sent(shipped):
    with serving(shipped, token="s3cret") as client:
        for headers in (
            {}, {"Authorization": "Bearer"}, {"Authorization": "Bearer s3cre"},
            {"Authorization": "Bearer s3cret2"}, {"Authorization": "Basic s3cret"}, {"Authorization": "s3cret"},
            {"Authorization": b"Bearer \xff\xfe"},
        ):  # fmt: skip
            for path in ("/v1/assess", "/v1/explain", "/v1/compare", "/v1/assess/stream", "/page/explanation"):
                answer = client.post(path, json={"text": "A dog."}, headers=headers)
                assert is_problem(answer, 401, "This server needs a token")
                assert answer.headers["www-authenticate"] == "Bearer"
            for path in ("/v1/model", "/metrics", "/docs", "/openapi.json", "/nothing"):
                assert is_problem(client.get(path, headers=headers), 401, "token")
        for path in ("/", "/healthz", "/page/static/page.js"):
            assert client.get(path).status_code == 200
        for scheme in ("Bearer", "bearer"):
            right = {"Authorization": f"{scheme} s3cret"}
            assert client.post("/v1/assess", json={"text": "A dog."}, headers=right).status_code == 200
        document = client.get("/openapi.json", headers=right).json()
        assert "401" in document["paths"]["/v1/assess"]["post"]["responses"]
        assert document["paths"]["/healthz"]["get"]["security"] == []


def test_answers_are_neither_kept_nor_shown_elsewhere(client):
    for path in ("/", "/v1/model", "/nothing"):
        headers = client.get(path).headers
        assert headers["cache-control"] == "no-store"
        assert headers["x-content-type-options"] == "nosniff"
        assert "default-src 'none'" in headers["content-security-policy"]
        assert "server" not in headers


# The batcher


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


def test_texts_of_many_clients_are_scored_together(held):
    async def work(batcher):
        first = asyncio.create_task(batcher.assess(["The first."]))
        await soon(held.entered.is_set)
        others = [asyncio.create_task(batcher.assess([f"Dog {number}.", "A cat."])) for number in range(10)]
        await soon(lambda: batcher.waiting == 21)
        held.gate.set()
        found = await asyncio.gather(first, *others)
        assert [len(one) for one in found] == [1] + [2] * 10
        assert batcher.waiting == 0

    run(held, work, batch=8)
    assert [len(batch) for batch in held.batches] == [1, 8, 8, 4]


@pytest.mark.parametrize("fails", ["in the model", "in the parser"])
def test_a_text_that_fails_does_not_fail_its_neighbours(held, shipped, monkeypatch, fails):
    if fails == "in the parser":
        original = batcher_module.Featurizer

        class Choosy:
            def __init__(self, *arguments, **options):
                self._parser = original(*arguments, **options).parser
                self.parser = self

            def parse(self, texts):
                if any("poison" in text for text in texts):
                    raise RuntimeError("this cannot be parsed")
                return self._parser.parse(texts)

        monkeypatch.setattr(batcher_module, "Featurizer", Choosy)
    texts = ["A dog sleeps.", "It is poison.", "A cat sleeps.", "A tree grows. A tree falls. A tree lies."]

    async def work(batcher):
        first = asyncio.create_task(batcher.assess(["The first."]))
        await soon(held.entered.is_set)
        tasks = [asyncio.create_task(batcher.assess([text])) for text in texts]
        await soon(lambda: batcher.waiting == 5)
        held.gate.set()
        await first
        return await asyncio.gather(*tasks, return_exceptions=True)

    one, poison, other, long = run(held, work, sentences=2)
    assert isinstance(poison, RuntimeError)
    assert isinstance(long, TooLongError)
    assert [one[0].to_dict(), other[0].to_dict()] == [assessed(shipped, texts[0]), assessed(shipped, texts[2])]


def test_a_client_that_goes_away_harms_nobody_and_its_texts_are_not_scored(held, shipped):
    async def work(batcher):
        first = asyncio.create_task(batcher.assess(["The first."]))
        await soon(held.entered.is_set)
        leaving = [asyncio.create_task(batcher.assess(["Gone.", "Gone too."])) for _ in range(3)]
        staying = asyncio.create_task(batcher.assess(["A dog sleeps."]))
        await soon(lambda: batcher.waiting == 8)
        for task in [first, *leaving]:
            task.cancel()
        await asyncio.gather(first, *leaving, return_exceptions=True)
        held.gate.set()
        assert [one.to_dict() for one in await staying] == [assessed(shipped, "A dog sleeps.")]
        assert batcher.waiting == 0

    run(held, work)
    assert held.batches == [["The first."], ["A dog sleeps."]]


@pytest.mark.parametrize("batch", [1, 2, 8])
@pytest.mark.parametrize("crowd", ["texts", "calls"])
def test_patient_texts_are_not_starved(held, batch, crowd):
    """Whatever others keep sending, and however small batches are."""
    held.gate.set()

    async def work(batcher):
        done = asyncio.Event()

        async def keep_busy(number):
            while not done.is_set():
                await (
                    batcher.assess([f"Dog {number}."]) if crowd == "texts" else batcher.call(lambda: time.sleep(0.002))
                )

        busy = [asyncio.create_task(keep_busy(number)) for number in range(12)]
        await asyncio.sleep(0.05)
        found = await asyncio.wait_for(batcher.assess(["A patient cat."] * 4, patient=True), 20)
        done.set()
        await asyncio.gather(*busy)
        return found

    assert len(run(held, work, batch=batch)) == 4


def test_patient_texts_wait_behind_others_and_leave_a_batch_to_them(held):
    async def work(batcher):
        first = asyncio.create_task(batcher.assess(["The first."]))
        await soon(held.entered.is_set)
        patient = asyncio.create_task(batcher.assess(["Patient."] * 8, patient=True))
        await soon(lambda: batcher.waiting == 9)
        quick = asyncio.create_task(batcher.assess(["Quick."] * 8))
        await soon(lambda: batcher.waiting == 17)
        held.gate.set()
        await asyncio.gather(first, patient, quick)

    run(held, work, batch=8)
    assert [dict(Counter(batch)) for batch in held.batches[1:]] == [
        {"Quick.": 6, "Patient.": 2},
        {"Quick.": 2, "Patient.": 6},
    ]


def test_long_texts_do_not_fill_a_batch_that_others_wait_for(held):
    async def work(batcher):
        first = asyncio.create_task(batcher.assess(["The first."]))
        await soon(held.entered.is_set)
        long = ["A dog sleeps. " * 2_000 + str(number) for number in range(6)]
        patient = asyncio.create_task(batcher.assess(long, patient=True))
        await soon(lambda: batcher.waiting == 7)
        held.gate.set()
        await asyncio.gather(first, patient)

    run(held, work, batch=8)
    assert [len(batch) for batch in held.batches[1:]] == [2, 2, 2]


def test_changes_are_not_tried_for_a_client_that_has_gone(held):
    held.gate.set()
    with serving(held, batch=2) as client:
        body = json.dumps({"text": "A dog sleeps. A cat sleeps. A tree grows. " * 5, "what_if": 10}).encode()
        head = f"POST /v1/explain HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {len(body)}"
        held.gate.clear()
        held.entered.clear()
        with closing(socket.create_connection(client.address)) as sock:
            sock.sendall(head.encode() + b"\r\n\r\n" + body)
            until(held.entered.is_set)
        # Its batch in work is finished; of the 150 changed texts hardly one is scored.
        held.gate.set()
        until(lambda: counters(client).get('cohegraph_requests_total{route="/v1/explain",status="499"}') == 1)
    assert sum(map(len, held.batches)) < 10


def test_the_description_for_people_needs_no_other_host(client):
    answer = client.get("/docs")
    assert answer.headers["content-type"].startswith("text/html")
    assert "POST /v1/explain" in answer.text
    assert not re.search(r"(?:src|href)=\"(?!/)", answer.text)


def test_changed_texts_are_not_measured_again(shipped):
    """A text at the limit may be split otherwise where a sentence was moved."""

    async def work(batcher):
        with pytest.raises(TooLongError):
            await batcher.assess(["A dog sleeps. A cat sleeps."])
        return await batcher.assess(["A dog sleeps. A cat sleeps."], patient=True)

    assert run(shipped, work, sentences=1)[0].counts["sentences"] == 2


def test_stop_finishes_what_was_taken_on_and_then_nothing_is(held):
    async def work(batcher):
        quick = asyncio.create_task(batcher.assess([f"Dog {number}." for number in range(20)]))
        patient = asyncio.create_task(batcher.assess(["A cat."] * 10, patient=True))
        call = asyncio.create_task(batcher.call(lambda: "called"))
        await soon(held.entered.is_set)
        stop = asyncio.create_task(batcher.stop())
        await asyncio.sleep(0.05)
        assert not stop.done()
        held.gate.set()
        await stop
        assert len(await quick) == 20
        assert len(await patient) == 10
        assert await call == "called"
        with pytest.raises(StoppedError):
            await asyncio.wait_for(batcher.assess(["Too late."]), 5)

    run(held, work, batch=4)


def test_a_batcher_can_be_started_again(shipped):
    async def work():
        batcher = Batcher(shipped, Limits())
        for _ in range(2):
            batcher.start()
            assert len(await asyncio.wait_for(batcher.assess(["A dog."]), 20)) == 1
            await batcher.stop()

    asyncio.run(work())


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_whoever_waits_learns_when_the_thread_has_ended(shipped):
    def fail(_size):
        raise RuntimeError("there is no counter")

    async def work():
        batcher = Batcher(shipped, Limits(), on_batch=fail)
        batcher.start()
        with pytest.raises(StoppedError):
            await asyncio.wait_for(batcher.assess(["A dog."]), 5)
        assert batcher.stopping
        await asyncio.wait_for(batcher.stop(), 5)

    asyncio.run(work())


def test_the_thread_that_scores_is_prepared_before_any_text_comes(shipped):
    """Also without an event loop: the thread that scores must be the first to use torch."""
    prepared = []
    batcher = Batcher(shipped, Limits(), prepare=lambda: prepared.append(threading.current_thread().name))
    batcher.open()
    assert prepared == ["model"]

    async def work():
        batcher.start()
        assert len(await asyncio.wait_for(batcher.assess(["A dog."]), 20)) == 1
        await batcher.stop()

    asyncio.run(work())
    assert prepared == ["model"]


def test_what_goes_wrong_while_preparing_is_raised(shipped):
    def fail():
        raise CohegraphError("There are no vectors.")

    batcher = Batcher(shipped, Limits(), prepare=fail)
    with pytest.raises(CohegraphError, match="no vectors"):
        batcher.open()
    assert batcher.stopping


def test_room_is_not_lost_with_those_who_waited_for_it(held):
    """Those who wait for room and leave must not take it with them."""

    async def work(batcher):
        taken = [await batcher.assess_when_free(f"Dog {number}.") for number in range(2)]
        waiting = [asyncio.create_task(batcher.assess_when_free("A cat.")) for _ in range(5)]
        last = asyncio.create_task(batcher.assess_when_free("The last cat."))
        await soon(held.entered.is_set)
        await asyncio.sleep(0)
        for task in waiting[:4]:
            task.cancel()
        held.gate.set()
        await asyncio.gather(*taken)
        waiting[4].cancel()
        outcome = await asyncio.wait_for(last, 10)
        return await outcome

    assert run(held, work, queue=4, batch=2).counts["sentences"] == 1


def test_streams_leave_room_for_requests(held):
    async def work(batcher):
        streams = [asyncio.create_task(batcher.assess_when_free(f"Line {number}.")) for number in range(20)]
        await soon(lambda: batcher.waiting == 4)
        request = asyncio.create_task(batcher.assess(["A dog."] * 4))
        await soon(lambda: batcher.waiting == 8)
        with pytest.raises(TooBusyError):
            await batcher.assess(["One more dog."])
        held.gate.set()
        assert len(await request) == 4
        for task in streams:
            assert (await (await task)).counts["sentences"] == 1

    run(held, work, queue=8, batch=4)


# The stream


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


def test_bad_lines_are_answered_and_do_not_end_the_stream(client):
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
            assert set(one) == {"line", "error"}
            assert re.fullmatch(r"The (line|id) .*[^.]\.", one["error"])
        else:
            assert set(one) == {"line", "level", "probabilities", "sureness", "unlikeness", "counts", "notices"}


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
            assert [(one["line"], "error" in one) for one in found] == [
                (1, True), (2, False), (3, True), (4, True), (6, False), (7, True),
            ]  # fmt: skip


def chunk(content):
    return b"%x\r\n%s\r\n" % (len(content), content)


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
        for _ in range(5):
            with closing(opened(client)) as sock:
                sock.sendall(chunk(b'"A dog sleeps."\n' * 50))
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
            time.sleep(0.1)
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
        await soon(lambda: batcher.waiting >= 9)
        await asyncio.sleep(0.05)
        first.cancel()
        await asyncio.gather(first, return_exceptions=True)
        await asyncio.wait_for(lines.aclose(), 10)
        assert asyncio.all_tasks() == before
        held.gate.set()
        await soon(lambda: batcher.waiting == 0)

    run(held, work, batch=2)
    assert "never retrieved" not in caplog.text


# A server as people start it


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
            b"POST /v1/assess/stream HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n" + chunk(line * 20)
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


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"texts": 0}, "The limit texts=0 is not valid: Input should be greater"),
        ({"body": "much"}, "The limit body=much is not valid: "),
        ({"drain": float("nan")}, "The limit drain=nan is not valid: "),
        ({"": 1}, "There is no limit ''"),
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
