"""Progress of long work, on standard error: a bar where a person looks, a line now and then in a log file."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterable, Iterator
from typing import TypeVar

from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeRemainingColumn,
)

T = TypeVar("T")

_console = Console(stderr=True)
_TIME_LEFT = TimeRemainingColumn()
_SECONDS_BETWEEN_LINES = 60


def _progress(*columns: object) -> Progress:
    return Progress(*columns, console=_console, transient=True, disable=not _console.is_terminal)  # type: ignore[arg-type]


def track_bytes(title: str) -> Progress:
    """A bar over the bytes of a file."""
    return _progress(SpinnerColumn(), TextColumn(title), BarColumn(), DownloadColumn(), TimeRemainingColumn())


def remark(line: str) -> None:
    """A line on standard error, for those who wait."""
    _console.print(line, highlight=False, markup=False)


def track(
    items: Iterable[T],
    title: str,
    total: int,
    *,
    done: int = 0,
    size: Callable[[T], int] = lambda _: 1,
    show: bool = True,
) -> Generator[T, None, None]:
    """The items, with a bar and the time left.

    ``size`` says how much of the total an item is, ``done`` how much was done before.
    """
    if not show:
        yield from items
        return
    if not _console.is_terminal:
        yield from _logged(items, title, total, done, size)
        return
    columns = (SpinnerColumn(), TextColumn(title), BarColumn(), MofNCompleteColumn(), _TIME_LEFT, TextColumn("left"))
    with _progress(*columns) as progress:
        task = progress.add_task("", total=total, completed=done)
        for item in items:
            yield item
            progress.advance(task, size(item))


def _logged(items: Iterable[T], title: str, total: int, done: int, size: Callable[[T], int]) -> Iterator[T]:
    """The items, with a line a minute; work of less than a minute is not spoken of."""
    spoken = time.monotonic()
    for item in items:
        yield item
        done += size(item)
        if time.monotonic() - spoken >= _SECONDS_BETWEEN_LINES:
            spoken = time.monotonic()
            _console.print(f"{title}: {done} of {total}", highlight=False)
