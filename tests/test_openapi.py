"""The server does what its OpenAPI document says, whatever it is sent.

COHEGRAPH_OPENAPI_CASES says how many cases are made up for each operation, besides those at the edges of its schema:
the default takes some seconds, a few thousand are for an afternoon.
"""

from __future__ import annotations

import json
import os
from collections import Counter

import pytest

pytest.importorskip("fastapi", reason="the extra 'serve' is not installed")
schemathesis = pytest.importorskip("schemathesis", reason="schemathesis is not installed")

from hypothesis import HealthCheck, Phase, given, seed, settings  # noqa: E402
from hypothesis import strategies as st  # noqa: E402
from schemathesis import GenerationMode  # noqa: E402
from schemathesis.checks import not_a_server_error  # noqa: E402
from schemathesis.python.asgi import shutdown_lifespans  # noqa: E402
from schemathesis.specs.openapi.checks import (  # noqa: E402
    allow_header_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
    unsupported_method,
)

from cohegraph.serve.api import create_app  # noqa: E402
from cohegraph.serve.limits import Limits  # noqa: E402

CASES = int(os.environ.get("COHEGRAPH_OPENAPI_CASES", "60"))
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    unsupported_method,
    allow_header_conformance,
]
OPERATIONS = (
    "POST /v1/assess",
    "POST /v1/assess/stream",
    "POST /v1/explain",
    "POST /v1/compare",
    "GET /v1/model",
    "GET /healthz",
    "GET /metrics",
)
LINES = "application/x-ndjson"


@schemathesis.serializer(LINES)
def _as_is(_, value):
    return value if isinstance(value, bytes | str) else json.dumps(value).encode()


_line = st.one_of(
    st.text().map(json.dumps),
    st.fixed_dictionaries(
        {"text": st.text()}, optional={"id": st.one_of(st.none(), st.booleans(), st.integers(), st.text())}
    ).map(json.dumps),
    st.recursive(st.none() | st.booleans() | st.floats() | st.text(), st.lists).map(json.dumps),
    st.text(),
)
schemathesis.openapi.media_type(
    LINES, st.lists(_line, max_size=6).map(lambda lines: "\n".join(lines).encode("utf-8", "surrogatepass"))
)


@pytest.fixture(scope="module")
def document(shipped):
    """The application's own description of itself; its limits are low, so that what is made up meets them."""
    shipped.assess(["It loads its parts."])
    app = create_app(shipped, limits=Limits(body=4_000, texts=3, sentences=4, queue=6, batch=4, rescored=200))
    yield schemathesis.openapi.from_asgi("/openapi.json", app)
    shutdown_lifespans()


def operations(document):
    return {one.ok().label: one.ok() for one in document.get_all_operations()}


def test_the_document_has_all_operations(document):
    assert set(operations(document)) == set(OPERATIONS)


@pytest.mark.parametrize("mode", list(GenerationMode), ids=lambda mode: mode.value)
@pytest.mark.parametrize("label", OPERATIONS)
def test_an_operation_answers_as_it_is_described(document, label, mode):
    operation, statuses = operations(document)[label], Counter()
    # What takes no input cannot be sent anything wrong, and all that is right is the same.
    takes_input = label.startswith("POST")
    if not takes_input and mode is GenerationMode.NEGATIVE:
        pytest.skip("it takes no input")

    @seed(1)
    @settings(
        max_examples=CASES if takes_input else 3, deadline=None, database=None,
        suppress_health_check=list(HealthCheck), phases=(Phase.explicit, Phase.generate, Phase.shrink),
    )  # fmt: skip
    @given(operation.as_strategy(generation_mode=mode))
    def every(case):
        statuses[case.call_and_validate(checks=CHECKS, timeout=120).status_code] += 1

    every()
    print(f"{label}, {mode.value}: {dict(statuses)}")
    assert sum(statuses.values()) >= (CASES if takes_input else 1) // 2
    if mode is GenerationMode.POSITIVE:
        assert statuses[200], "else it was never looked at what it answers when it answers"
