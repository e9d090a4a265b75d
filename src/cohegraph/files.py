"""Files that are whole or not there: written beside their place, then moved into it."""

import os
import random
import shutil
import tempfile
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from cohegraph.errors import CohegraphError

# The file by which a process has a folder for itself.
LOCK = ".lock"
_MOVES = 20
# Seconds between two looks at whether another process is done.
_PAUSE = 0.1
# It can only be read by setting it.
_UMASK = os.umask(0o022)
os.umask(_UMASK)


def cache_folder() -> Path:
    """Where this user keeps what can be computed again; `COHEGRAPH_CACHE` names another place."""
    named = os.environ.get("COHEGRAPH_CACHE")
    base = os.environ.get("XDG_CACHE_HOME")
    folder = Path(named) if named else (Path(base) if base else Path.home() / ".cache") / "cohegraph"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        if named:
            raise CohegraphError(
                f"COHEGRAPH_CACHE names {named}, which cannot be used as a folder ({error.strerror or error}): name "
                "another one.",
                code="cannot-write",
            ) from None
        folder = Path(tempfile.gettempdir()) / f"cohegraph-{os.getuid() if hasattr(os, 'getuid') else 'cache'}"
        folder.mkdir(parents=True, exist_ok=True)
    return folder


def lock(stream: IO[Any], *, shared: bool = False) -> bool:
    """Lock an open file, for this process alone or with others, until it is closed or the process ends.

    Returns False where another process has locked it.
    """
    try:
        import fcntl
    except ImportError:  # not on Windows
        return True
    try:
        fcntl.flock(stream, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


@contextmanager
def alone_in(folder: Path, *, wait: bool = False) -> Iterator[None]:
    """Make sure that no other process works in a folder; it is removed at the end if nothing was left in it.

    Another process that works in it is an error, unless this one is to ``wait`` for it.
    """
    stream = _lock_file(folder)
    while wait and not (lock(stream) and _is_in_place(stream, folder / LOCK)):
        stream.close()
        time.sleep(_PAUSE)
        stream = _lock_file(folder)
    with stream:
        if not lock(stream):
            message = f"Another process is writing to {folder}: wait for it, or stop it."
            raise CohegraphError(message, code="in-use")
        try:
            yield
        finally:
            if folder.is_dir() and [file.name for file in folder.iterdir()] == [LOCK]:
                (folder / LOCK).unlink()
                folder.rmdir()


def _lock_file(folder: Path) -> IO[str]:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        return (folder / LOCK).open("w")
    except FileExistsError:
        message = f"{folder} is a file, and a folder of that name is needed: move it, or name another place."
        raise CohegraphError(message, code="foreign-folder") from None
    except OSError as error:
        raise CohegraphError(
            f"Nothing can be written to {folder} ({error.strerror or error}): name another folder; COHEGRAPH_CACHE "
            "names that of the cache.",
            code="cannot-write",
        ) from None


def _is_in_place(stream: IO[Any], file: Path) -> bool:
    """Whether an open file is still the one of that name: who had it before may have removed it."""
    try:
        return os.path.samestat(os.fstat(stream.fileno()), file.stat())
    except FileNotFoundError:
        return False


@contextmanager
def new_file(file: Path) -> Iterator[IO[bytes]]:
    """A file to fill, which takes the place of ``file`` once it is complete, and leaves no trace if it never is."""
    try:
        handle, name = tempfile.mkstemp(dir=file.parent, prefix=f".{file.name}.")
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(file)) from None
    try:
        with os.fdopen(handle, "wb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        # Temporary files are private; this one is as any other that the user writes.
        Path(name).chmod(0o666 & ~_UMASK)
        Path(name).replace(file)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def check_writable(folder: Path) -> None:
    """Raise where no file can be written to a folder, before any work is done for it."""
    try:
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise CohegraphError(
            f"Nothing can be written to {folder} ({error.strerror or error}): name another folder.", code="cannot-write"
        ) from None


def write_atomically(file: Path, content: str | bytes) -> None:
    """Write a file such that readers see the old one or the new one, never half of it."""
    with new_file(file) as stream:
        stream.write(content.encode("utf-8", "replace") if isinstance(content, str) else content)


@contextmanager
def new_folder(folder: Path) -> Iterator[Path]:
    """A folder to fill, which takes the place of ``folder`` once it is complete, and leaves no trace if it never is."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    work = _beside(folder)
    work.mkdir()
    try:
        yield work
        _move_into_place(work, folder)
    finally:
        shutil.rmtree(work, ignore_errors=True)


def remove_leftovers(folder: Path) -> None:
    """Remove what `new_folder` could not remove because its process was killed, where no other process is at work."""
    for left in folder.parent.glob(f".{folder.name}.*"):
        shutil.rmtree(left, ignore_errors=True)


def _beside(folder: Path) -> Path:
    return folder.with_name(f".{folder.name}.{uuid.uuid4().hex[:12]}")


def _move_into_place(new: Path, folder: Path) -> None:
    for attempt in range(_MOVES):
        old = _beside(folder)
        try:
            if folder.exists():
                folder.rename(old)
            new.rename(folder)
        except OSError:
            # Another process has put its folder there in between.
            if attempt == _MOVES - 1:
                raise
            time.sleep(random.uniform(0, 0.01 * (attempt + 1)))
        else:
            return
        finally:
            if old.exists() and not folder.exists():
                # Another process may be faster; then its folder stays.
                with suppress(OSError):
                    old.rename(folder)
            shutil.rmtree(old, ignore_errors=True)
