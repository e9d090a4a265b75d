"""Progress of long work, on standard error, shown only where a person looks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
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


def _progress(*columns: object) -> Progress:
    return Progress(*columns, console=_console, transient=True, disable=not _console.is_terminal)  # type: ignore[arg-type]


def track_bytes(title: str) -> Progress:
    """A bar over the bytes of a file."""
    return _progress(SpinnerColumn(), TextColumn(title), BarColumn(), DownloadColumn(), TimeRemainingColumn())


def track(
    items: Iterable[T], title: str, total: int, *, size: Callable[[T], int] = lambda _: 1, show: bool = True
) -> Iterator[T]:
    """The items, with a bar and the time left; ``size`` says how much of the total an item is."""
    if not show:
        yield from items
        return
    columns = (SpinnerColumn(), TextColumn(title), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with _progress(*columns) as progress:
        task = progress.add_task("", total=total)
        for item in items:
            yield item
            progress.advance(task, size(item))
