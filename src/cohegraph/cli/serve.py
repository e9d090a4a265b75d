"""``cohegraph serve``: the page and the HTTP interface."""

import ipaddress
import re
import threading
import webbrowser
from importlib.util import find_spec
from typing import Annotated

from typer import Option

from cohegraph.cli import options
from cohegraph.cli.output import say
from cohegraph.errors import CohegraphError, MissingPartError
from cohegraph.models import folder_of, load
from cohegraph.serve.limits import Limits
from cohegraph.serve.listening import bound

TOKEN_VARIABLE = "COHEGRAPH_TOKEN"
_PACKAGES = ("fastapi", "uvicorn", "prometheus_client")
_LOOPBACK = ("localhost", "127.0.0.1", "::1")
_TOKEN = re.compile(r"[A-Za-z0-9._~+/=-]+")  # as RFC 6750 has it


def serve(
    model: options.ModelName = None,
    host: Annotated[str, Option(help="Where to listen; 0.0.0.0 for every network of this machine.")] = "127.0.0.1",
    port: Annotated[int, Option(min=0, max=65535, help="0 for any that is free.")] = 8000,
    browser: Annotated[bool, Option("--browser/--no-browser", help="Open the page in the browser.")] = True,
    token: Annotated[str | None, Option(envvar=TOKEN_VARIABLE, help="The bearer token that clients must send.")] = None,
    allow_host: Annotated[
        list[str] | None, Option("--allow-host", help="Another name of the server, as behind a proxy; repeatable.")
    ] = None,
    limit: Annotated[
        list[str] | None, Option("--limit", help="Change a limit (body, texts, queue, …): sentences=500; repeatable.")
    ] = None,
    parser: options.ParserPlace = None,
    vectors: options.VectorsPlace = None,
    encoder: options.EncoderPlace = None,
    reader: options.ReaderPlace = None,
    heads: options.HeadsPlace = None,
    device: options.Device = "auto",
    threads: options.Threads = None,
) -> None:
    """Serve a model: a page for people at /, an HTTP interface under /v1, described at /docs.

    It listens on this machine alone unless told otherwise. Texts are neither stored nor logged. SIGTERM or Ctrl-C stops
    it once everything that it took on is answered.
    """
    limits = _limits(limit or [])
    if token is not None and not _TOKEN.fullmatch(token):
        raise CohegraphError("The token may have letters, digits and -._~+/= only: choose another.", code="bad-token")
    if not host.strip():
        raise CohegraphError("There is no host to listen on: name one, such as --host 127.0.0.1.", code="no-host")
    folder = folder_of(model)
    for package in _PACKAGES:
        if find_spec(package) is None:
            raise MissingPartError(f"The package '{package}' is missing: run pip install \"cohegraph[serve]\".")
    sock = bound(host, port)
    # These import torch and FastAPI, which takes seconds: what is wrong with the options is said before.
    from cohegraph.serve.api import create_app
    from cohegraph.serve.page import add_page
    from cohegraph.serve.server import Server

    loaded = load(folder, parser=parser, vectors=vectors, encoder=encoder, reader=reader, heads=heads, device=device)

    def prepare() -> None:
        options.set_threads(threads)
        # The first text would else wait for the pretrained parts, and only then learn that one is missing.
        loaded.assess(["The server is getting ready. It reads a text."])

    # A page from elsewhere could point its own name at this machine, and read what a browser here is told. Where others
    # are meant to call, or must know a token, any name will do.
    hosts = [*_LOOPBACK, host, *(allow_host or [])] if token is None and _is_loopback(host) else None
    app = create_app(loaded, limits=limits, token=token, hosts=hosts, prepare=prepare)
    add_page(app)
    app.state.service.batcher.open()
    address = f"http://{_for_address(host)}:{sock.getsockname()[1]}/"
    say(f"Ready: {address} (model: {loaded.name_}). Ctrl-C stops it.")
    if token is None and not _is_loopback(host):
        say("Everybody who reaches this machine can use it: --token TOKEN asks for one.")
    if browser:
        threading.Timer(0.3, webbrowser.open, (address + (f"#token={token}" if token else ""),)).start()
    Server(app, sock).run_until_stopped()


def _limits(changes: list[str]) -> Limits:
    for change in changes:
        if "=" not in change:
            raise CohegraphError(f"'{change}' is not a limit: write it as sentences=500.", code="bad-limit")
    return Limits.of(options.parsed(changes))


def _for_address(host: str) -> str:
    shown = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    return f"[{shown}]" if ":" in shown else shown


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
