"""``cohegraph cache``."""

from __future__ import annotations

from cohegraph.features.cache import FILE, FeatureCache
from cohegraph.features.store import ABOUT, shards_in

FAST = ["--set", "training.epochs=8", "--set", "training.hidden=4"]


def test_cache_of_features(run, one_sentence, tmp_path, monkeypatch, shipped, store):
    monkeypatch.setenv("COHEGRAPH_CACHE", str(tmp_path / "cache"))
    texts = ["The dog chased a cat.", "A boat sailed."]
    FeatureCache().features(texts, shipped.featurizer, needs=["words"])
    about = FeatureCache().info()
    assert (about.entries, about.sequences) == (4, 2)
    code, out, _ = run("cache", "info")
    assert code == 0
    assert f" {about.entries} " in out
    assert run("cache", "verify")[1] == "6 entries looked at, 0 of them damaged.\n"
    import sqlite3

    with sqlite3.connect(tmp_path / "cache" / FILE) as connection:
        key, half = connection.execute("SELECT key, content FROM halves LIMIT 1").fetchone()
        flipped = half[:-1] + bytes([half[-1] ^ 1])
        connection.execute("UPDATE halves SET content = ? WHERE key = ?", (flipped, key))
    connection.close()
    code, out, _ = run("cache", "verify")
    assert (code, out) == (
        2,
        "6 entries looked at, 1 of them damaged, which are removed and will be computed again.\n",
    )
    assert run("cache", "verify")[1] == "5 entries looked at, 0 of them damaged.\n"
    assert "Nothing was removed" in run("cache", "clear", stdin=b"n\n")[1]
    assert run("cache", "clear", "--yes")[0] == 0
    assert "0 entries" in run("cache", "info")[1]


def test_cache_of_a_store(run, one_sentence, store, tmp_path):
    code, out, _ = run("cache", "info", store)
    assert code == 0
    assert "features of 36 documents in 4 files" in " ".join(out.split())
    assert run("cache", "verify", store)[0] == 0
    file = shards_in(store)[2]
    file.write_bytes(file.read_bytes()[:-1])
    code, _, err = run("cache", "verify", store)
    assert code == 2
    assert file.name in err
    assert "1 of 4 files" in err
    (store / ABOUT).unlink()
    assert "26 documents so far, in 3 files; not complete" in " ".join(run("cache", "info", store)[1].split())
    code, out, _ = run("cache", "verify", store)
    assert code == 2
    assert "3 files of 4" in " ".join(out.split())
    file.unlink()
    assert run("cache", "verify", store)[0] == 0
    assert run("cache", "clear", store, "--yes")[0] == 0
    assert not store.exists()
    assert "holds no features" in one_sentence("cache", "clear", tmp_path, "--yes")
    assert "holds no features" in one_sentence("cache", "info", tmp_path / "absent")
