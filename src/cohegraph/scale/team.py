"""Processes on one machine that work on one thing together (torch.distributed, gloo)."""

from __future__ import annotations

import multiprocessing
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

import torch
from torch import Tensor, distributed

from cohegraph.errors import CohegraphError
from cohegraph.scale.processes import end_with_parent, ignoring_interrupts

# Seconds.
_MOMENT = 5.0
_ENDED = (
    "One of the processes that work together was ended from outside: start again, with fewer --workers if the memory "
    "does not suffice."
)
P = ParamSpec("P")
T = TypeVar("T")


class Team(Protocol):
    """The processes that work together."""

    @property
    def rank(self) -> int:
        """The number of this one, from 0 on."""

    @property
    def size(self) -> int:
        """How many there are."""

    def add_up(self, tensors: list[Tensor]) -> None:
        """Replace every tensor, in all processes, by its sum over all of them."""


@dataclass(frozen=True)
class Alone:
    """One process."""

    rank: int = 0
    size: int = 1

    def add_up(self, tensors: list[Tensor]) -> None:
        """Nothing to add."""


@dataclass(frozen=True)
class _Gloo:
    rank: int
    size: int

    def add_up(self, tensors: list[Tensor]) -> None:
        """All in one message: each would wait for all processes by itself."""
        together = torch.cat([tensor.reshape(-1) for tensor in tensors])
        distributed.all_reduce(together)
        start = 0
        for tensor in tensors:
            tensor.copy_(together[start : start + tensor.numel()].view_as(tensor))
            start += tensor.numel()


def run_together(size: int, work: Callable[Concatenate[Team, P], T], *arguments: P.args, **options: P.kwargs) -> T:
    """What ``work(team, …)`` gives in the first of so many processes, all of which run it.

    ``work`` is a function of a module, and its arguments can be sent to other processes. The threads of this process
    are shared evenly.
    Raises what it raises in any of them.
    """
    if size == 1:
        return work(Alone(), *arguments, **options)
    spawn = multiprocessing.get_context("spawn")
    threads = max(1, torch.get_num_threads() // size)
    with tempfile.TemporaryDirectory() as folder:
        meeting_place = (Path(folder) / "meeting").as_uri()
        processes = []
        answers: list[Connection] = []
        try:
            for rank in range(size):
                answer, theirs = spawn.Pipe(duplex=False)
                process = spawn.Process(
                    target=_member, args=(rank, size, meeting_place, threads, theirs, work, arguments, options)
                )
                processes.append(process)
                answers.append(answer)
                with ignoring_interrupts():
                    process.start()
                theirs.close()
            outcome: T = _first_answer(answers)
            return outcome
        finally:
            for process in processes:
                if process.pid is not None:  # it was started
                    process.terminate()
                    process.join()


def _first_answer(answers: list[Connection]) -> Any:
    """The outcome of the first process once all have ended well, or what went wrong in one of them."""
    outcomes: dict[Any, Any] = {}
    errors: list[Exception] = []
    while len(outcomes) < len(answers):
        # Once one has failed the others fail too, for want of it: within a moment it is clear which was the first.
        found = wait([answer for answer in answers if answer not in outcomes], _MOMENT if errors else None)
        if not found:
            break
        for ready in found:
            try:
                failed, outcomes[ready] = ready.recv()  # type: ignore[union-attr, call-arg]
            except EOFError:
                failed, outcomes[ready] = True, CohegraphError(_ENDED, code="process-ended")
            if failed:
                errors.append(outcomes[ready])
    if errors:
        raise next((error for error in errors if isinstance(error, CohegraphError)), errors[0])
    return outcomes[answers[0]]


def _member(
    rank: int,
    size: int,
    meeting_place: str,
    threads: int,
    answer: Connection,
    work: Callable[..., Any],
    arguments: tuple[Any, ...],
    options: dict[str, Any],
) -> None:
    end_with_parent()
    torch.set_num_threads(threads)
    try:
        distributed.init_process_group("gloo", init_method=meeting_place, rank=rank, world_size=size)
        try:
            outcome = work(_Gloo(rank, size), *arguments, **options)
        finally:
            distributed.destroy_process_group()
        answer.send((False, outcome if rank == 0 else None))
    except Exception as error:
        answer.send((True, error))
