"""Does a system read coherence? How often the original text scores above its own sentences in another order.

    python benchmarks/shuffle_test.py hanna-systems FILE build/runs/hanna-systems --group Human
    python benchmarks/shuffle_test.py ellipse-cohesion-systems FILE build/runs/ellipse-cohesion-systems --level high

Every system of a finished experiment is trained again as it was in each fold, with what was chosen there, and scores
the test documents of a kind (a group, a level) and the same documents with their sentences shuffled. The score is the
expected level. Finished work is kept next to the results, and a run that was stopped goes on where it was. The table is
added to the experiment's summary.
"""

from __future__ import annotations

import argparse
import json
import os
from collections import defaultdict
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path

import numpy as np

from cohegraph.experiments.plan import read_experiment
from cohegraph.experiments.ready import ready_experiments
from cohegraph.experiments.results_folder import RESULTS, read_lines
from cohegraph.experiments.runner import prepare
from cohegraph.experiments.summary import SUMMARY, read_summary
from cohegraph.experiments.table import Number, Table, write_tables
from cohegraph.experiments.units import Result
from cohegraph.explain.changed_texts import apart, joined
from cohegraph.features import Featurizer
from cohegraph.features.cache import FeatureCache
from cohegraph.learning.objectives import Levels, Targets
from cohegraph.progress import track
from cohegraph.systems.registry import SYSTEMS
from cohegraph.systems.system import Graded, Lesson

SEED = 0


def main() -> None:
    options = _options()
    experiment = read_experiment(ready_experiments()[options.experiment], {"corpus.path": str(options.corpus)})
    corpus = experiment.corpus.read()
    if len(corpus.section_names) > 1:
        raise SystemExit("The shuffle test is for experiments on one section.")
    wanted = [
        row
        for row in range(len(corpus))
        if (options.group is None or corpus.groups[row] == options.group)
        and (options.level is None or corpus.labels[row] == options.level)
    ]
    cache = FeatureCache()
    work = prepare(experiment, corpus, cache, show_progress=True)
    features = work.features["", corpus.section_names[0]]
    featurizer = Featurizer(features.settings)
    texts, rows = shuffled([corpus.texts[row] for row in wanted], wanted, featurizer)
    mixed = cache.features(texts, featurizer, needs=features.material, show_progress=True)
    place = {row: number for number, row in enumerate(rows)}

    found = read_lines(options.results / RESULTS, Result)
    file = options.results / "shuffle-test.jsonl"
    done = {(line["system"], line["fold"]): line for line in _lines(file)}
    units = [unit for unit in work.units() if not unit.variant]
    waiting = [unit for unit in units if (unit.system.name, unit.fold.name) not in done]
    started = (features, mixed, corpus.codes, len(corpus.levels), place)
    with ProcessPoolExecutor(options.cores, get_context("spawn"), _start, started) as pool:
        jobs = [pool.submit(_run, unit, found[unit.name]) for unit in waiting]
        for job in track(as_completed(jobs), "training again", len(units), done=len(units) - len(waiting)):
            line = job.result()
            done[line["system"], line["fold"]] = line
            with file.open("a", encoding="utf-8") as stream:
                stream.write(json.dumps(line) + "\n")
    found_table = table(list(done.values()), options)
    write_tables([found_table], options.results)
    summary = options.results / SUMMARY
    read_summary(summary).with_table(found_table).write(summary)
    print(found_table.markdown())


def shuffled(texts: list[str], rows: list[int], featurizer: Featurizer) -> tuple[list[str], list[int]]:
    """The texts with their sentences in another order, the gaps in their places; those of one sentence are left out."""
    random = np.random.default_rng(SEED)
    mixed, kept = [], []
    for row, document in zip(rows, featurizer.parser.parse(texts), strict=True):
        sentences, gaps = apart(document)
        if len(set(sentences)) < 2:
            continue
        order = np.arange(len(sentences))
        while [sentences[i] for i in order] == sentences:
            order = random.permutation(len(sentences))
        mixed.append(joined([sentences[i] for i in order], gaps))
        kept.append(row)
    return mixed, kept


_shared: tuple = ()


def _start(*shared) -> None:
    import torch
    from threadpoolctl import threadpool_limits

    global _shared
    torch.set_num_threads(1)
    threadpool_limits(1)
    _shared = shared


def _run(unit, result: Result) -> dict:
    """Scores of the originals and of their shuffled versions, by the system as it was in this fold."""
    features, mixed, classes, levels, place = _shared
    fold = unit.fold
    training, dev = (Graded(features[part], Targets(classes[part])) for part in (fold.training, fold.dev))
    fitted = unit.system.changed(result.chosen).fit(Lesson(training + dev, Levels(levels), seed=unit.seed))
    rows = [row for row in fold.test.tolist() if row in place]
    scores = [
        fitted.predict(documents) @ np.arange(levels)
        for documents in (features[rows], mixed[[place[row] for row in rows]])
    ]
    where = [fold.test.tolist().index(row) for row in rows]
    stored = np.array(result.probabilities)[where] @ np.arange(levels)
    return {
        "system": unit.system.name,
        "fold": fold.name,
        "original": scores[0].tolist(),
        "shuffled": scores[1].tolist(),
        "off": float(np.abs(stored - scores[0]).max(initial=0)),
    }


def table(lines: list[dict], options) -> Table:
    """Shares of documents whose original is above, equal to and below its shuffled version."""
    by_system = defaultdict(list)
    for line in lines:
        by_system[line["system"]].append(line)
    kind = " ".join(word for word in (options.group, options.level) if word) or "all"
    rows = []
    for name, system in SYSTEMS.items():
        if name not in by_system:
            continue
        difference = np.concatenate([np.array(one["original"]) - np.array(one["shuffled"]) for one in by_system[name]])
        # Systems that do not read order still see another cut into tokens, and round differently.
        above, below = (difference > 1e-6).mean(), (difference < -1e-6).mean()
        rows.append(
            (
                system.title,
                *(Number(100 * float(share), decimals=1) for share in (above, abs(1 - above - below), below)),
                Number(float(difference.mean()), decimals=3, signed=True),
            )
        )
    documents = sum(len(one["original"]) for one in by_system[next(iter(by_system))])
    off = max(line["off"] for line in lines)
    return Table(
        "shuffle-test",
        f"The shuffle test on {options.experiment}, {documents} documents ({kind})",
        ("system", "original above, %", "equal, %", "below, %", "mean difference"),
        tuple(rows),
        (
            "The expected level (0 to 2) of a test document against that of the same document with its sentences "
            f"shuffled once. Scores of the originals differ from those of the experiment by {off:.1g} at most.",
        ),
    )


def _lines(file: Path) -> list[dict]:
    return [json.loads(line) for line in file.read_text("utf-8").splitlines()] if file.exists() else []


def _options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("experiment", help="a ready experiment, such as hanna-systems")
    parser.add_argument("corpus", type=Path)
    parser.add_argument("results", type=Path, help="the folder of the finished experiment")
    parser.add_argument("--group", help="only documents of this group")
    parser.add_argument("--level", help="only documents of this level")
    parser.add_argument("--cores", type=int, default=os.cpu_count())
    return parser.parse_args()


if __name__ == "__main__":
    main()
