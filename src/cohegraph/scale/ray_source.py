"""Documents that Ray Data reads, and actors on any number of machines compute (extra ``ray``).

Actors load the pretrained parts once and compute with one thread, as the worker processes of one machine do, so that
the features are the same, digit by digit, on processors of the same kind. One that is killed is started again, and its
documents are computed again.
"""

import json
import logging
import os
import warnings
from collections.abc import Iterator, Sequence
from pathlib import PurePosixPath
from typing import Any

import numpy as np
import pyarrow
from safetensors.numpy import load as load_safetensors
from safetensors.numpy import save as save_safetensors

from cohegraph.corpora.columns import Columns, Entry
from cohegraph.corpora.stream import Documents
from cohegraph.corpora.tables import missing_column
from cohegraph.errors import CohegraphError, MissingPartError
from cohegraph.features import Featurizer
from cohegraph.features.shards import Known, Places, find, key_of
from cohegraph.features.stages import Pieces
from cohegraph.scale.engine import BATCH, Request, loaded_with_one_thread
from cohegraph.scale.processes import cores
from cohegraph.settings import Settings

_READERS = {".jsonl": "read_json", ".ndjson": "read_json", ".json": "read_json", ".csv": "read_csv"}
# Of a Ray that is started here: what is under way, and nothing else, lies in its shared memory.
_SHARED_BYTES = 256 * 2**20
# Documents that go to an actor, and are lost with it, together: some hundred.
_BLOCK_BYTES = 2**18
# Reading takes little of a core, and must go on where actors have all of them.
_TO_READ = 0
_COLUMNS = {
    "key": pyarrow.binary(),
    "about": pyarrow.string(),
    "problem": pyarrow.string(),
}

Row = dict[str, Any]


class RaySource:
    """See `cohegraph.scale.featurizing.Source`.

    Args:
        names: Files, folders and tables that every machine sees; or addresses that Ray reads, such as
            ``s3://bucket/essays/``, of Parquet files unless they end otherwise.
        columns: Which columns to take.
        featurizer: What to compute.
        address: That of a Ray cluster; by default a Ray is started on this machine.
        workers: How many actors; by default one per core of this machine, wherever Ray runs.
    """

    def __init__(
        self,
        names: Sequence[str],
        columns: Columns,
        featurizer: Featurizer,
        *,
        address: str | None = None,
        workers: int | None = None,
    ) -> None:
        self._columns, self._featurizer, self._workers = columns, featurizer, workers or cores()
        elsewhere = [name for name in names if "://" in name]
        if elsewhere and len(elsewhere) < len(names):
            raise CohegraphError(
                "Name files of this machine or addresses of others, not both at once.", code="mixed-places"
            )
        here = Documents([] if elsewhere else names, columns)
        here.check()
        self.remarks = here.remarks
        self._ray = _started(address)
        self._rows = self._read(elsewhere[0], elsewhere) if elsewhere else self._read_here(names)
        self._total = int(self._rows.count()) if elsewhere else len(here)

    def __len__(self) -> int:
        return self._total

    def computed(self, known: Known) -> Iterator[tuple[Sequence[Entry], Pieces]]:
        """See `Source`."""
        # Held here for as long as actors may have to be started again.
        places = {name: self._ray.put(found[:2].copy()) for name, found in known.places.items()}
        rows = self._rows.map_batches(
            _Actor,
            fn_constructor_args=(self._featurizer.settings, self._featurizer.device, places),
            batch_size=BATCH,
            batch_format="pyarrow",
            num_cpus=1,
            concurrency=self._workers,
        )
        try:
            for batch in rows.iter_batches(batch_size=BATCH, batch_format="pyarrow"):
                yield _taken_apart(batch)
        except self._ray.exceptions.RayError as error:
            raise CohegraphError(
                f"Ray had to stop ({_reason(error)}); what is done is kept.", code="ray-stopped"
            ) from error

    def _read_here(self, names: Sequence[str]) -> Any:
        """Files that our own readers know, read by one task, wherever it runs."""
        columns = self._columns
        items = self._ray.data.from_items([{"name": name} for name in names], override_num_blocks=1)
        return items.flat_map(lambda item: map(_row, Documents([item["name"]], columns).usable()), num_cpus=_TO_READ)

    def _read(self, first: str, addresses: Sequence[str]) -> Any:
        """Whatever Ray reads."""
        reader = _READERS.get(PurePosixPath(first).suffix.lower(), "read_parquet")
        columns = self._columns
        try:
            found = getattr(self._ray.data, reader)(list(addresses), num_cpus=_TO_READ)
            present = found.columns() or []
        except Exception as error:  # of Ray, Arrow, or a library for some kind of address
            raise CohegraphError(f"Ray cannot read {first} ({_reason(error)}).", code="cannot-read") from None
        for column in columns.required:
            if column not in present:
                raise missing_column(first, column, present)
        return found.map(lambda row: _checked_row(row, columns), num_cpus=_TO_READ)


class _Actor:
    """A worker somewhere."""

    def __init__(self, settings: Settings, device: str, known: dict[str, Any]) -> None:
        import ray

        self._featurizer = loaded_with_one_thread(settings, device)
        self._known: dict[str, Places] = {name: ray.get(places) for name, places in known.items()}

    def __call__(self, batch: pyarrow.Table) -> pyarrow.Table:
        rows = batch.to_pylist()
        texts = [(row["text"] or b"").decode("utf-8", "surrogatepass") for row in rows]
        keys = [key_of(text) for text in texts]
        bad = np.array([bool(row["problem"]) for row in rows])
        known = {name: ((find(places, keys) >= 0) | bad).tolist() for name, places in self._known.items()}
        pieces = Request((), texts, known).pieces(self._featurizer)
        computed = {
            name: [None if one is None else save_safetensors(one) for one in made] for name, made in pieces.items()
        }
        found = {"key": keys, "about": batch["about"], "problem": batch["problem"], **computed}
        columns = _COLUMNS | dict.fromkeys(computed, pyarrow.binary())
        return pyarrow.table(found, schema=pyarrow.schema(columns))


def _row(entry: Entry) -> Row:
    """A document as Ray carries it: texts as bytes, for not every string is one for Arrow."""
    about = [entry.id, entry.label, entry.group]
    return {"text": entry.text.encode("utf-8", "surrogatepass"), "about": json.dumps(about), "problem": ""}


def _checked_row(row: Row, columns: Columns) -> Row:
    """A row that Ray has read, or what is wrong with it, as its message and code; only the code where it is skipped."""
    entry = columns.entry("A row", row, 1)
    fault = columns.fault(entry)
    if fault is None:
        return _row(entry)
    problem = ["" if columns.skips(fault) else str(fault), fault.code]
    return {"text": b"", "about": "", "problem": json.dumps(problem)}


def _taken_apart(batch: pyarrow.Table) -> tuple[list[Entry], Pieces]:
    documents: list[Entry] = []
    pieces: Pieces = {name: [] for name in batch.column_names if name not in _COLUMNS}
    for row in batch.to_pylist():
        if row["problem"]:
            message, code = json.loads(row["problem"])
            if message:
                raise CohegraphError(message, code=code)
            continue
        name, label, group = json.loads(row["about"])
        documents.append(Entry("", id=name, label=label, group=group, digest=row["key"].hex()))
        for name, made in pieces.items():
            made.append(None if row[name] is None else load_safetensors(row[name]))
    return documents, pieces


def _started(address: str | None) -> Any:
    """Ray, connected to a cluster or to one of its own."""
    # Ray sends figures to its makers, and complains of how Ray Data starts actors, unless it is told otherwise.
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")
    warnings.filterwarnings("ignore", category=UserWarning, module=r"ray\.")
    try:
        import ray
        import ray.data
    except ImportError:
        raise MissingPartError("Ray is not installed: pip install 'cohegraph[ray]'.") from None
    alone: dict[str, Any] = {"num_cpus": cores(), "object_store_memory": _SHARED_BYTES, "include_dashboard": False}
    try:
        ray.init(
            address=address or "local",
            ignore_reinit_error=True,
            log_to_driver=False,
            logging_level=logging.ERROR,
            **({} if address else alone),
        )
    except Exception as error:  # whatever Ray raises where it cannot be reached or started
        raise CohegraphError(
            f"Ray cannot be started or reached ({_reason(error)}): check --address.", code="no-ray-cluster"
        ) from None
    context = ray.data.DataContext.get_current()
    context.execution_options.preserve_order = True
    context.target_max_block_size = _BLOCK_BYTES
    context.enable_progress_bars = False
    context.print_on_execution_start = False
    logging.getLogger("ray.data").setLevel(logging.ERROR)
    return ray


def _reason(error: Exception) -> str:
    """What Ray says first, or last where it reports what was called; rather the cause itself, where it is known."""
    while isinstance(cause := getattr(error, "cause", None), Exception):
        error = cause
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    if not lines:
        return type(error).__name__
    return lines[-1 if "Traceback" in str(error) else 0].rstrip(".:")
