"""Processes on one machine that work together on one thing (torch.distributed, gloo)."""

import multiprocessing
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar

import torch
from torch import Tensor, distributed

from cohegraph.errors import CohegraphError
from cohegraph.scale.processes import end_with_parent, ignoring_interrupts

# Seconds.
_MOMENT = 5.0
_ENDED = (
    "One of the processes that work together was ended from outside: start again, with fewer --workers if memory is "
    "short."
)
P = ParamSpec("P")
T = TypeVar("T")


@dataclass(frozen=True)
class Team:
    """The processes that work together: the number of this one, from 0 on, and how many there are."""

    rank: int = 0
    size: int = 1

    def add_up(self, tensors: list[Tensor]) -> None:
        """Replace every tensor, in all processes, by its sum over all of them."""
        if self.size == 1:
            return
        # All in one message: each would wait for all processes by itself.
        together = torch.cat([tensor.reshape(-1) for tensor in tensors])
        distributed.all_reduce(together)
        start = 0
        for tensor in tensors:
            tensor.copy_(together[start : start + tensor.numel()].view_as(tensor))
            start += tensor.numel()


ALONE = Team()


def run_together(size: int, work: Callable[Concatenate[Team, P], T], *arguments: P.args, **options: P.kwargs) -> T:
    """What ``work(team, …)`` gives in the first of so many processes, all of which run it.

    ``work`` is a function of a module, and its arguments can be sent to other processes. The threads of this process
    are shared evenly. What is raised in one of them is raised here.
    """
    if size == 1:
        return work(ALONE, *arguments, **options)
    spawn = multiprocessing.get_context("spawn")
    threads = max(1, torch.get_num_threads() // size)
    with tempfile.TemporaryDirectory() as folder:
        meeting_place = (Path(folder) / "meeting").as_uri()
        processes = []
        answers: list[Connection] = []
        try:
            for rank in range(size):
                answer, theirs = spawn.Pipe(duplex=False)
                given = (Team(rank, size), meeting_place, threads, theirs, work, arguments, options)
                process = spawn.Process(target=_member, args=given)
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
    team: Team,
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
        distributed.init_process_group("gloo", init_method=meeting_place, rank=team.rank, world_size=team.size)
        try:
            outcome = work(team, *arguments, **options)
        finally:
            distributed.destroy_process_group()
        answer.send((False, outcome if team.rank == 0 else None))
    except Exception as error:
        answer.send((True, error))
