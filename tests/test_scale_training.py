"""Training in chunks, and by several processes, is the training in memory."""

from __future__ import annotations

import os
import signal
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from material import CLASSES, learnable

from cohegraph.errors import CohegraphError
from cohegraph.graph.corpus_graph import build_corpus_graph
from cohegraph.learning.objectives import Levels, OrdinalLevels, Ranking, Rating, Targets
from cohegraph.scale.checkpoints import CheckpointFile
from cohegraph.scale.team import run_together
from cohegraph.scale.training import own_rows, train_in_chunks
from cohegraph.settings import TrainingSettings
from cohegraph.systems.gcn.training import HeldOut, Task, Trainer

EPOCHS = 20
train = Trainer().train


def task_of(graph, vectors, classes, options, **more):
    return Task(graph, vectors.astype(np.float32), Targets(classes), Levels(CLASSES), options, **more)


def both(chunk, documents=120, dtype=torch.float32, edges=True, dev=False, **changes):
    """The outcome in memory, and the outcome in chunks."""
    counts, vectors, classes = learnable(documents=documents)
    graph = build_corpus_graph(counts, weighting="tfidf" if edges else "none")
    options = TrainingSettings(**({"hidden": 16, "epochs": EPOCHS, "dropout": 0.5} | changes))
    held_out = HeldOut(graph.weights, vectors, Targets(classes)) if dev else None
    task = task_of(graph, vectors, classes, options, dev=held_out, dtype=dtype)
    return train(task), train_in_chunks(task, chunk=chunk)


def same(one, other, tolerance):
    for name in ("w0", "w1", "pattern_sums", "pattern_degrees"):
        np.testing.assert_allclose(getattr(one.network, name), getattr(other.network, name), rtol=0, atol=tolerance)
    np.testing.assert_allclose(
        [epoch.loss for epoch in one.epochs], [epoch.loss for epoch in other.epochs], rtol=0, atol=tolerance
    )


@pytest.mark.parametrize("chunk", [1, 7, 64, 120, 10_000])
def test_chunks_of_any_size_give_the_same_weights(chunk):
    same(*both(chunk), 1e-5)


@pytest.mark.parametrize(
    "changes",
    [
        {"dropout": 0.0},
        {"input_dropout": 0.5},
        {"dropout": 0.0, "input_dropout": 0.3},
        {"class_weights": "balanced"},
        {"clip": 0.1, "weight_decay": 0.01},
        {"init": "normal", "learning_rate": 0.05},
        {"edges": False},
        {"edges": False, "input_dropout": 0.5},
    ],
)
def test_whatever_the_settings(changes):
    same(*both(50, **changes), 2e-5)


def test_in_double_precision_they_are_equal_to_rounding():
    same(*both(13, dtype=torch.float64, input_dropout=0.2), 1e-12)


def test_the_same_epoch_is_chosen_on_dev_documents():
    whole, parts = both(32, dev=True, learning_rate=0.05)
    assert whole.chosen_epoch == parts.chosen_epoch
    assert [epoch.dev_quality for epoch in whole.epochs] == [epoch.dev_quality for epoch in parts.epochs]


@settings(deadline=None)
@given(chunk=st.integers(1, 40), documents=st.integers(9, 40), dropout=st.sampled_from([0.0, 0.5]))
def test_on_any_number_of_documents(chunk, documents, dropout):
    same(*both(chunk, documents, epochs=3, dropout=dropout), 1e-5)


def test_vectors_may_be_mapped_into_memory(tmp_path):
    counts, vectors, classes = learnable(documents=60)
    np.save(tmp_path / "vectors.npy", vectors.astype(np.float32))
    mapped = np.load(tmp_path / "vectors.npy", mmap_mode="r")
    options = TrainingSettings(hidden=8, epochs=5)
    graph = build_corpus_graph(counts)
    task = task_of(graph, vectors, classes, options)
    same(train_in_chunks(replace(task, vectors=mapped), chunk=16), train(task), 1e-5)


def in_chunks(team, counts, task, **options):
    """What every process of a team runs."""
    graph = build_corpus_graph(counts, rows=own_rows(counts.shape[0], team))
    return train_in_chunks(replace(task, graph=graph), team=team, **options)


@pytest.mark.parametrize("size", [2, 3])
def test_processes_together_give_the_same_weights(size):
    counts, vectors, classes = learnable(documents=100)
    options = TrainingSettings(hidden=16, epochs=EPOCHS, dropout=0.5, input_dropout=0.2, class_weights="balanced")
    task = task_of(build_corpus_graph(counts), vectors, classes, options)
    same(run_together(size, in_chunks, counts, task, chunk=16), train(task), 1e-5)


class StoppedError(Exception):
    pass


def stop_after(last):
    def stop(number, _):
        if number == last:
            raise StoppedError

    return stop


@pytest.mark.parametrize("dev", [False, True])
@pytest.mark.parametrize("stopped", [1, 7, 19, 20])
def test_a_training_that_was_stopped_goes_on_to_the_same_weights(tmp_path, stopped, dev):
    """Digit by digit: parameters, Adam's state, random numbers and the choice of an epoch are all kept."""
    counts, vectors, classes = learnable(documents=60)
    graph = build_corpus_graph(counts)
    options = TrainingSettings(hidden=8, epochs=EPOCHS, dropout=0.5, input_dropout=0.2, weight_decay=0.01)
    held_out = HeldOut(graph.weights, vectors, Targets(classes)) if dev else None
    task = task_of(graph, vectors, classes, options, dev=held_out)
    undisturbed = train_in_chunks(task, chunk=16)

    def kept():
        return CheckpointFile(tmp_path / "kept.safetensors", "this one", between=0)

    with pytest.raises(StoppedError):
        train_in_chunks(replace(task, on_epoch=stop_after(stopped)), chunk=16, checkpoints=kept())
    resumed = []
    watched = replace(task, on_epoch=lambda number, _: resumed.append(number))
    again = train_in_chunks(watched, chunk=16, checkpoints=kept())
    # The epoch in which it was stopped was not kept.
    assert resumed == list(range(stopped, EPOCHS + 1))
    same(again, undisturbed, 0)
    assert again.chosen_epoch == undisturbed.chosen_epoch
    assert again.epochs == undisturbed.epochs


def test_a_snapshot_of_another_training_or_a_damaged_one_is_not_taken(tmp_path):
    counts, vectors, classes = learnable(documents=30)
    file, options = tmp_path / "kept.safetensors", TrainingSettings(hidden=8, epochs=3)
    train_in_chunks(
        task_of(build_corpus_graph(counts), vectors, classes, options), checkpoints=CheckpointFile(file, "one")
    )
    assert CheckpointFile(file, "one").load() is not None
    assert CheckpointFile(file, "another").load() is None
    whole = file.read_bytes()
    flipped = whole[:-1] + bytes([whole[-1] ^ 1])
    for content in (b"", whole[:100], whole[:-10], b"x" * 1000, flipped):
        file.write_bytes(content)
        assert CheckpointFile(file, "one").load() is None


def test_a_team_of_which_one_has_no_edges_takes_the_same_way(tmp_path):
    """The second process has documents without any pattern."""
    counts, vectors, classes = learnable(documents=40)
    counts = counts.tolil()
    counts[20:] = 0
    counts = counts.tocsr()
    task = task_of(build_corpus_graph(counts), vectors, classes, TrainingSettings(hidden=8, epochs=5))
    same(run_together(2, in_chunks, counts, task), train(task), 1e-5)


@pytest.mark.parametrize("objective", [OrdinalLevels(CLASSES), Rating()])
def test_other_objectives_are_trained_in_chunks_too(objective):
    counts, vectors, classes = learnable(documents=60)
    values = classes if objective.outputs > 1 else classes / (CLASSES - 1)
    options = TrainingSettings(hidden=8, epochs=5, class_weights="balanced")
    graph = build_corpus_graph(counts)
    task = Task(graph, vectors.astype(np.float32), Targets(values), objective, options)
    same(train_in_chunks(task, chunk=16), train(task), 1e-5)


def test_a_ranking_is_not_trained_in_chunks():
    counts, vectors, classes = learnable(documents=30)
    task = Task(build_corpus_graph(counts), vectors, Targets(classes / 2), Ranking(), TrainingSettings(hidden=8))
    with pytest.raises(CohegraphError) as caught:
        train_in_chunks(task, chunk=16)
    assert caught.value.code == "ranking-in-chunks"


def fail(team):
    if team.rank == 1:
        raise CohegraphError("The second has no documents.", code="made-up")
    team.add_up([torch.zeros(1)])


def be_killed(team):
    if team.rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    team.add_up([torch.zeros(1)])


def test_what_goes_wrong_in_one_process_ends_all():
    with pytest.raises(CohegraphError) as caught:
        run_together(2, fail)
    assert caught.value.code == "made-up"
    with pytest.raises(CohegraphError) as caught:
        run_together(2, be_killed)
    assert caught.value.code == "process-ended"
