"""Progress of long work, on standard error: a bar on a terminal, a line per minute in a log file."""

import time
from collections.abc import Callable, Generator, Iterable
from typing import TypeVar

from rich import progress
from rich.console import Console

T = TypeVar("T")

_console = Console(stderr=True)
_SECONDS_BETWEEN_LINES = 60


def _bar(title: str, amount: progress.ProgressColumn) -> progress.Progress:
    before = (progress.SpinnerColumn(), progress.TextColumn(title), progress.BarColumn())
    after = (progress.TimeRemainingColumn(), progress.TextColumn("left"))
    shown = _console.is_terminal
    return progress.Progress(*before, amount, *after, console=_console, transient=True, disable=not shown)


def track_bytes(title: str) -> progress.Progress:
    """A bar over the bytes of a file."""
    return _bar(title, progress.DownloadColumn())


def remark(line: str) -> None:
    """A line on standard error, for those who wait."""
    _console.print(line, highlight=False, markup=False, soft_wrap=True)


def track(
    items: Iterable[T],
    title: str,
    total: int,
    *,
    done: int = 0,
    size: Callable[[T], int] = lambda _: 1,
    show: bool = True,
) -> Generator[T, None, None]:
    """The items, with a bar and the time left; without a terminal, with a line per minute.

    ``size`` says how much of the total an item is, ``done`` how much was done before.
    """
    if not show:
        yield from items
        return
    logged = time.monotonic()
    with _bar(title, progress.MofNCompleteColumn()) as bar:
        task = bar.add_task("", total=total, completed=done)
        for item in items:
            yield item
            done += size(item)
            bar.update(task, completed=done)
            if not _console.is_terminal and time.monotonic() - logged >= _SECONDS_BETWEEN_LINES:
                logged = time.monotonic()
                remark(f"{title}: {done} of {total}")
