"""What the server gives under load, against the same model in a plain loop on the same cores.

    python benchmarks/serve_load.py [--seconds 120] [--clients 64] [--stream 20000]

Prints, from one run: texts per second of a loop over batches (before and after), of the server with many clients (wrk,
from Debian's packages), their ratio, latencies, errors, and the server's memory; a stream of many texts through one
request; how the server ends, and how soon a new one is ready. Texts are those that come with cohegraph.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

from cohegraph.corpora.starter import starter_corpus

RESTARTS = 5
TEXTS = [one.text for one in starter_corpus()]
LUA = """
local bodies = {}
for line in io.lines(os.getenv("BODIES")) do bodies[#bodies + 1] = line end
local at = 0
function setup(thread) thread:set("start", at) end
function init() math.randomseed(1) end
request = function()
  at = at + 1
  local body = bodies[at % #bodies + 1]
  return wrk.format("POST", "/v1/assess", {["Content-Type"] = "application/json"}, body)
end
done = function(summary, latency)
  local e = summary.errors
  print(string.format("RESULT %d %d %d %d %f %f", summary.requests, summary.duration,
    e.connect + e.read + e.write + e.timeout, e.status, latency:percentile(50) / 1000, latency:percentile(95) / 1000))
end
"""
LOOP = """
import sys, time
from cohegraph import load
from cohegraph.cli.options import set_threads
from cohegraph.corpora.starter import starter_corpus
set_threads(None)
model = load()
texts = [one.text for one in starter_corpus()] * 40
model.assess(texts[:32])
start, done = time.perf_counter(), 0
while time.perf_counter() - start < float(sys.argv[1]):
    at = done % (len(texts) - 32)
    done += len(model.assess(texts[at : at + 32]))
print(done / (time.perf_counter() - start))
"""


class Server:
    """A real server in a process of its own."""

    def __init__(self) -> None:
        start = time.perf_counter()
        command = [Path(sys.executable).parent / "cohegraph", "serve", "--no-browser", "--port", "0"]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        self.address = re.search(r"http://[\d.:]+", self.process.stderr.readline())[0]
        while urllib.request.urlopen(f"{self.address}/healthz").status != 200:
            time.sleep(0.01)
        self.ready = time.perf_counter() - start

    def megabytes(self) -> float:
        """Memory in use."""
        status = Path(f"/proc/{self.process.pid}/status").read_text("ascii")
        return int(re.search(r"VmRSS:\s+(\d+)", status)[1]) / 2**10

    def stop(self) -> int:
        """Tell it to stop; its exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(120)


def loop(seconds: float) -> float:
    """Texts per second of the bare model."""
    done = subprocess.run([sys.executable, "-c", LOOP, str(seconds)], capture_output=True, text=True, check=True)
    return float(done.stdout)


def load(server: Server, clients: int, seconds: float) -> tuple[float, int, float, float]:
    """Texts per second, errors, and the middle and the 95th percentile of the milliseconds of an answer."""
    with tempfile.TemporaryDirectory() as folder:
        script, bodies = Path(folder, "load.lua"), Path(folder, "bodies")
        script.write_text(LUA)
        bodies.write_text("".join(json.dumps({"text": text}) + "\n" for text in TEXTS))
        command = ["wrk", "-t1", f"-c{clients}", f"-d{seconds:g}s", "--timeout", "30s", "-s", script, server.address]
        environment = {**os.environ, "BODIES": str(bodies)}
        done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    found = re.search(r"RESULT (\d+) (\d+) (\d+) (\d+) ([\d.]+) ([\d.]+)", done.stdout)
    requests, microseconds, broken, refused = map(int, found.groups()[:4])
    return 1e6 * requests / microseconds, broken + refused, float(found[5]), float(found[6])


def watched(server: Server, work) -> tuple[object, list[float]]:
    """The outcome of some work, and the server's memory every second meanwhile."""
    seen, over = [], threading.Event()

    def watch() -> None:
        while not over.wait(1):
            seen.append(server.megabytes())

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        return work(), seen
    finally:
        over.set()
        thread.join()


def stream(server: Server, count: int) -> tuple[float, int]:
    """Seconds for so many texts in one request, and how many answers came in order with a level."""
    import requests

    def lines() -> Iterator[bytes]:
        for number in range(count):
            yield json.dumps({"id": number, "text": TEXTS[number % len(TEXTS)]}).encode() + b"\n"

    start, right = time.perf_counter(), 0
    with requests.post(f"{server.address}/v1/assess/stream", data=lines(), stream=True, timeout=3600) as answer:
        for number, line in enumerate(answer.iter_lines()):
            found = json.loads(line)
            right += found["id"] == number and found["level"] is not None
    return time.perf_counter() - start, right


def main() -> None:
    options = _options()
    before = loop(options.seconds / 4)
    server = Server()
    print(f"ready after {server.ready:.1f} s")
    (rate, errors, middle, high), memory = watched(server, lambda: load(server, options.clients, options.seconds))
    after = loop(options.seconds / 4)
    plain = (before + after) / 2
    print(f"plain loop over batches of 32: {before:.1f} texts a second before, {after:.1f} after")
    print(
        f"{options.clients} clients for {options.seconds:g} s: {rate:.1f} texts a second, {rate / plain:.2f} of the "
        f"plain loop; {errors} errors; an answer takes {middle:.0f} ms (p50), {high:.0f} ms (p95)"
    )
    quarter = max(1, len(memory) // 4)
    print(
        f"memory: {sum(memory[:quarter]) / quarter:.0f} MB in the first quarter, "
        f"{sum(memory[-quarter:]) / quarter:.0f} MB in the last, {max(memory):.0f} MB at most"
    )
    if options.stream:
        (seconds, right), memory = watched(server, lambda: stream(server, options.stream))
        quarter = max(1, len(memory) // 4)
        print(
            f"stream: {right} of {options.stream} texts answered in order, {options.stream / seconds:.1f} a second; "
            f"memory {sum(memory[:quarter]) / quarter:.0f} MB in the first quarter, "
            f"{sum(memory[-quarter:]) / quarter:.0f} MB in the last"
        )
    code = server.stop()
    ready = sorted(restarted() for _ in range(RESTARTS))
    print(
        f"stopped with exit code {code}; new ones were ready after {statistics.median(ready):.1f} s "
        f"({ready[0]:.1f} to {ready[-1]:.1f} s, {RESTARTS} times)"
    )


def restarted() -> float:
    """Seconds until a new server is ready."""
    server = Server()
    server.stop()
    return server.ready


def _options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=120)
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--stream", type=int, default=20_000)
    return parser.parse_args()


if __name__ == "__main__":
    main()
