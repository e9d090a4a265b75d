"""What processes that share a machine keep to."""

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from typing import Any

_SECONDS_TO_END = 5


def cores() -> int:
    """How many processor cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@contextmanager
def ignoring_interrupts() -> Iterator[None]:
    """Start processes in here, and an interruption from the keyboard is for this one alone.

    A request to end comes through afterwards: a process that is half started would complain.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    asked: list[int] = []
    interrupt = signal.signal(signal.SIGINT, signal.SIG_IGN)
    end = signal.signal(signal.SIGTERM, lambda number, _: asked.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, interrupt)
        signal.signal(signal.SIGTERM, end)
    if asked:
        signal.raise_signal(signal.SIGTERM)


def new_pool(size: int, start: Callable[..., None], *arguments: Any) -> ProcessPoolExecutor:
    """So many processes, each of which first calls ``start``."""
    spawn = multiprocessing.get_context("spawn")
    return ProcessPoolExecutor(size, mp_context=spawn, initializer=start, initargs=arguments)


def end_at_once(pool: ProcessPoolExecutor) -> None:
    """End a pool without waiting for what its processes are doing."""
    processes = list((getattr(pool, "_processes", None) or {}).values())
    manager = getattr(pool, "_executor_manager_thread", None)
    pool.shutdown(wait=False, cancel_futures=True)
    for process in processes:
        process.terminate()
    # Its manager closes pipes, and must be done with that before the interpreter ends.
    if manager is not None:
        manager.join(_SECONDS_TO_END)


def end_with_parent() -> None:
    """In a child process: leave interruptions to the parent, and end when it has ended, however that was."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()

    def watch() -> None:
        if parent is not None:
            parent.join()
            os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
