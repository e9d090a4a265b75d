"""A shard: the features of some hundred documents in a row as an Arrow file, named after its content.

The name ends with the SHA-256 of the file, so that a damaged one is known by its name, and the same features are the
same file whoever made them. A shard is written beside its place and moved into it: it is whole or not there. Vectors
are not compressed, and can be mapped into memory as they are.
"""

import hashlib
import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow
from safetensors import SafetensorError
from safetensors.numpy import load as load_safetensors
from safetensors.numpy import save as save_safetensors
from scipy import sparse

from cohegraph.errors import DamagedFileError
from cohegraph.features.document_features import OF_ENCODER, TALLIES
from cohegraph.features.stages import STRUCTURE, VECTOR, Arrays
from cohegraph.files import write_atomically

KEY_BYTES = 16
_ABOUT = b"cohegraph"
_NAME = re.compile(r"\d{8}-([0-9a-f]{32})\.arrow")
_OPEN_AT_ONCE = 64
# Hashes of texts as two numbers each, and the file and row where each text is, (4, texts), by the first number.
Places = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Shard:
    """Documents in a row.

    ``keys`` are the hashes of the texts; labels and groups may be missing. Shapes, with N documents: ``counts`` (N,
    patterns), ``tallies`` (N, len(TALLIES)), ``vectors`` (N, dimensions). ``further`` is what other stages made of each
    document, by the stage's name. ``stages`` has, for each stage by its name, the hash of everything that shaped it
    except the texts.
    """

    keys: Sequence[bytes]
    ids: Sequence[str]
    labels: Sequence[Any]
    groups: Sequence[str | None]
    counts: sparse.csr_array
    tallies: npt.NDArray[np.int64]
    vectors: npt.NDArray[np.float32]
    further: Mapping[str, Sequence[Arrays]]
    stages: Mapping[str, str]

    def __len__(self) -> int:
        return len(self.keys)

    def arrays(self, stage: str, row: int) -> Arrays:
        """What a stage made of one of the documents."""
        if stage in self.further:
            return self.further[stage][row]
        tallies = self.tallies[row]
        if stage == VECTOR.name:
            return {"vector": self.vectors[row], "tokens": tallies[-len(OF_ENCODER) :]}
        low, high = self.counts.indptr[row : row + 2]
        return {
            "patterns": np.array([self.counts.shape[1]]),
            "indices": self.counts.indices[low:high],
            "data": self.counts.data[low:high],
            "tallies": tallies[: -len(OF_ENCODER)],
        }


def key_of(text: str) -> bytes:
    """The hash of a text."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[:KEY_BYTES]


def shards_in(folder: Path) -> list[Path]:
    """All files of a folder that are shards by their names."""
    return sorted(file for file in folder.glob("*.arrow") if _NAME.fullmatch(file.name))


def write_shard(folder: Path, number: int, shard: Shard) -> Path:
    """Write a shard, unless the same one is there already."""
    content = _serialised(shard)
    file = folder / f"{number:08d}-{hashlib.sha256(content).hexdigest()[:32]}.arrow"
    if not file.is_file():
        write_atomically(file, content)
    return file


def is_whole(file: Path) -> bool:
    """Whether a shard is there, and is what was written."""
    named = _NAME.fullmatch(file.name)
    if named is None or not file.is_file():
        return False
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()[:32] == named[1]


def read_shard(file: Path) -> Shard:
    """A shard whose vectors are mapped into memory."""
    batch = _batch(file)
    try:
        about = json.loads(batch.schema.metadata[_ABOUT])
        column = {name: batch.column(name) for name in batch.schema.names}
        starts = column["patterns"].offsets.to_numpy()
        counts = sparse.csr_array(
            (column["counts"].values.to_numpy(), column["patterns"].values.to_numpy(), starts),
            shape=(len(batch), about["patterns"]),
        )
        return Shard(
            keys=column["key"].to_pylist(),
            ids=column["id"].to_pylist(),
            labels=[None if label is None else json.loads(label) for label in column["label"].to_pylist()],
            groups=column["group"].to_pylist(),
            counts=counts,
            tallies=_tallies(_matrix(column["tallies"]), about["tallies"]),
            vectors=_matrix(column["vector"]),
            further={name: _Packed(column[name]) for name in about.get("stages", ()) if name in column},
            # The first version of shards named two stages.
            stages=about.get("stages") or {STRUCTURE.name: about["structure"], VECTOR.name: about["vector"]},
        )
    except (KeyError, TypeError, ValueError, AttributeError, SafetensorError):
        raise DamagedFileError(f"{file} is not a file of features as this version of cohegraph writes it.") from None


def mapped_vectors(file: Path) -> npt.NDArray[np.float32]:
    """The vectors of a shard, mapped into memory; few files are open at once, however many shards there are."""
    about = file.stat()
    return _mapped(file, about.st_ino, about.st_mtime_ns)


@lru_cache(maxsize=_OPEN_AT_ONCE)
def _mapped(file: Path, *version: int) -> npt.NDArray[np.float32]:
    """The version differs once a damaged file was replaced by a new one of the same name."""
    return _matrix(_batch(file).column("vector"))


def _batch(file: Path) -> pyarrow.RecordBatch:
    try:
        return pyarrow.ipc.open_file(pyarrow.memory_map(str(file))).get_batch(0)
    except (pyarrow.ArrowException, OSError) as error:
        raise DamagedFileError(f"{file} cannot be read ({str(error).splitlines()[0]}): it is damaged.") from None


def _matrix(column: pyarrow.FixedSizeListArray) -> npt.NDArray[Any]:
    width = column.type.list_size
    flat: npt.NDArray[Any] = column.values.to_numpy(zero_copy_only=True)
    return flat[column.offset * width :][: len(column) * width].reshape(len(column), width)


def _tallies(stored: npt.NDArray[np.int64], names: Sequence[str]) -> npt.NDArray[np.int64]:
    """Tallies in their present order; -1 for one that was not counted when the shard was written."""
    if tuple(names) == TALLIES:
        return stored
    column, unknown = dict(zip(names, stored.T, strict=True)), np.full(len(stored), -1)
    return np.column_stack([column.get(name, unknown) for name in TALLIES])


def _serialised(shard: Shard) -> bytes:
    counts, text = shard.counts, pyarrow.string()
    starts = pyarrow.array(counts.indptr.astype(np.int32))
    about = {"stages": dict(shard.stages), "patterns": counts.shape[1], "tallies": TALLIES}
    labels = [None if label is None else json.dumps(label, ensure_ascii=False) for label in shard.labels]
    columns = {
        "key": pyarrow.array(shard.keys, pyarrow.binary(KEY_BYTES)),
        "id": pyarrow.array(shard.ids, text),
        "label": pyarrow.array(labels, text),
        "group": pyarrow.array(shard.groups, text),
        "patterns": pyarrow.ListArray.from_arrays(starts, pyarrow.array(counts.indices.astype(np.int32))),
        "counts": pyarrow.ListArray.from_arrays(starts, pyarrow.array(counts.data.astype(np.int64))),
        "tallies": _fixed(shard.tallies.astype(np.int64)),
        "vector": _fixed(shard.vectors.astype(np.float32)),
    }
    for name, made in shard.further.items():
        columns[name] = pyarrow.array([save_safetensors(dict(arrays)) for arrays in made], pyarrow.large_binary())
    batch = pyarrow.record_batch(list(columns.values()), names=list(columns))
    schema = batch.schema.with_metadata({_ABOUT: json.dumps(about, sort_keys=True)})
    sink = pyarrow.BufferOutputStream()
    with pyarrow.ipc.new_file(sink, schema) as writer:
        writer.write_batch(batch.replace_schema_metadata(schema.metadata))
    return bytes(sink.getvalue())


class _Packed(Sequence[Arrays]):
    """Arrays of documents as they are stored, unpacked when they are needed."""

    def __init__(self, column: pyarrow.LargeBinaryArray) -> None:
        self._column = column

    def __len__(self) -> int:
        return len(self._column)

    def __getitem__(self, row: Any) -> Any:
        return load_safetensors(self._column[row].as_py())


def _fixed(matrix: npt.NDArray[Any]) -> pyarrow.FixedSizeListArray:
    flat = pyarrow.array(np.ascontiguousarray(matrix).reshape(-1))
    return pyarrow.FixedSizeListArray.from_arrays(flat, matrix.shape[1])


class Known:
    """Which stages of which texts are in shards already: hashes of texts, and where each is.

    Args:
        files: Shards that are whole.
        named: The names of those that the corpus consists of so far.
        digests: For each stage by its name, the hash of all that shapes it now.
    """

    def __init__(self, files: Sequence[Path], named: Collection[str], digests: Mapping[str, str]) -> None:
        self._files, self._opened, self.digests = files, lru_cache(maxsize=_OPEN_AT_ONCE)(read_shard), digests
        found: dict[str, list[Places]] = {name: [] for name in digests}
        corpus: list[Places] = []
        for number, file in enumerate(files):
            try:
                shard = read_shard(file)
            except DamagedFileError:  # of another version; it will be removed
                continue
            places = np.vstack([_pairs(shard.keys), np.full(len(shard), number), np.arange(len(shard))])
            if file.name in named:
                corpus.append(places)
            for name, digest in digests.items():
                if shard.stages.get(name) == digest:
                    found[name].append(places)
        self.places = {name: _sorted_places(some) for name, some in found.items()}
        self.corpus = _sorted_places(corpus)

    def arrays(self, stage: str, key: bytes) -> Arrays:
        """What a stage made of a text that is known."""
        places = self.places[stage]
        column = int(find(places, [key])[0])
        if column < 0:
            raise KeyError(f"{stage} of {key.hex()}")
        file, row = places[2:, column].tolist()
        return self._opened(self._files[file]).arrays(stage, row)


def _pairs(keys: Sequence[bytes]) -> npt.NDArray[np.int64]:
    """Hashes as two numbers each, (2, hashes)."""
    return np.frombuffer(b"".join(keys), dtype=np.int64).reshape(-1, 2).T


def _sorted_places(found: list[Places]) -> Places:
    """Hashes as two numbers, files and rows, (4, texts), by the first number."""
    places = np.concatenate([np.zeros((4, 0), dtype=np.int64), *found], axis=1)
    return places[:, np.argsort(places[0], kind="stable")]


def find(places: Places, keys: Sequence[bytes]) -> npt.NDArray[np.int64]:
    """The column of every hash, or -1.

    One of two texts that share half of their hash may not be found; then it is computed again, which is all.
    """
    if not places.shape[1]:
        return np.full(len(keys), -1)
    first, second = _pairs(keys)
    column = np.minimum(np.searchsorted(places[0], first), places.shape[1] - 1)
    return np.where((places[0, column] == first) & (places[1, column] == second), column, -1)
