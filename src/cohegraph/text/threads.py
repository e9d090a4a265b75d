"""Independent work side by side, each piece of it on one thread, so that no digit depends on how many there are."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")


@contextmanager
def one_thread() -> Iterator[None]:
    """Compute with one thread: sums of floats depend, in their last digits, on how many there are."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def side_by_side(work: Callable[[T], R], items: Sequence[T]) -> list[R]:
    """What some work makes of every item, with as many threads as torch may use.

    It must release the interpreter, as torch does. The items that take longest should come first.
    """
    import torch

    threads = torch.get_num_threads()
    if min(threads, len(items)) <= 1:
        return [work(item) for item in items]
    try:
        with ThreadPoolExecutor(threads, initializer=torch.set_num_threads, initargs=(1,)) as pool:
            return list(pool.map(work, items))
    finally:
        # What is set in another thread holds in part for this one, too.
        torch.set_num_threads(threads)
