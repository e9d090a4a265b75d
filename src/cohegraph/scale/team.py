"""Processes on one machine that work together on one thing (torch.distributed, gloo)."""

import tempfile
from collections.abc import Callable
from concurrent.futures import FIRST_EXCEPTION, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar

import torch
from torch import Tensor, distributed

from cohegraph.errors import CohegraphError
from cohegraph.scale.processes import end_at_once, end_with_parent, ignoring_interrupts, new_pool

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
    pool = new_pool(size, _start, max(1, torch.get_num_threads() // size))
    with tempfile.TemporaryDirectory() as folder:
        meeting_place = (Path(folder) / "meeting").as_uri()
        try:
            with ignoring_interrupts():
                futures = [
                    pool.submit(_member, Team(rank, size), meeting_place, work, arguments, options)
                    for rank in range(size)
                ]
            done, others = wait(futures, return_when=FIRST_EXCEPTION)
            # Once one has failed, the others that wait for it fail too, within a moment.
            ended = [*done, *wait(others, _MOMENT).done]
            errors = [error for future in ended if (error := future.exception())]
            if errors:
                # The cause rather than what it led to: that a connection has ended.
                raise min(errors, key=lambda error: not isinstance(error, CohegraphError | BrokenProcessPool))
            outcome: T = futures[0].result()
            return outcome
        except BrokenProcessPool:
            raise CohegraphError(_ENDED, code="process-ended") from None
        finally:
            end_at_once(pool)


def _start(threads: int) -> None:
    end_with_parent()
    torch.set_num_threads(threads)


def _member(
    team: Team, meeting_place: str, work: Callable[..., Any], arguments: tuple[Any, ...], options: dict[str, Any]
) -> Any:
    distributed.init_process_group("gloo", init_method=meeting_place, rank=team.rank, world_size=team.size)
    try:
        outcome = work(team, *arguments, **options)
    finally:
        distributed.destroy_process_group()
    return outcome if team.rank == 0 else None
