"""The rows of any table: CSV, TSV, JSON Lines (also compressed by gzip) or Parquet; and plain text files."""

import codecs
import csv
import gzip
import io
import json
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import IO, Any, NoReturn

from cohegraph.errors import CohegraphError, DamagedFileError

_COMPRESSED = ".gz"
_OF_LINES = (".csv", ".tsv", ".jsonl", ".ndjson")
TABLE_ENDINGS = (*_OF_LINES, ".parquet", *(ending + _COMPRESSED for ending in _OF_LINES))
# Texts of whole books are longer than the default of the csv module.
_LONGEST_FIELD = 2**30
_ROWS_FOR_NAMES = 100
_ROWS_AT_ONCE = 1_000

Row = dict[str, Any]
# What stands for a row that cannot be read; it may raise the error.
BadRow = Callable[[CohegraphError], Row]


def refuse(error: CohegraphError) -> NoReturn:
    """A row that cannot be read spoils the table."""
    raise error


def is_table(file: Path) -> bool:
    """Whether a file is a table by its ending."""
    return _ending(file) in TABLE_ENDINGS


def _ending(file: Path) -> str:
    """The ending of a file's name, with that before it where the file is compressed."""
    ending = file.suffix.lower()
    return file.with_suffix("").suffix.lower() + ending if ending == _COMPRESSED else ending


def read_plain_text(file: Path, *, legacy: bool = False) -> str:
    """The text of a plain text file in UTF-8; ``legacy`` reads Windows-1252 too."""
    _must_exist(file)
    with _opened(file, "rb") as stream:
        content: bytes = stream.read()
    try:
        return decoded(content, str(file))
    except CohegraphError:
        if not legacy or b"\0" in content:
            raise
        return content.decode("cp1252", errors="replace")


def check_table(file: Path, wanted: Iterable[str], *, bad_row: BadRow = refuse) -> int:
    """How many rows a table has; an error where it cannot be read to its end, has none, or lacks a column."""
    rows, missing, found = 0, set(wanted), dict[str, None]()
    of_interest = None
    if file.suffix.lower() == ".parquet" and file.is_file():
        with _parquet_file(file) as table:
            names = table.schema_arrow.names
        _check_names(file, names)
        found = dict.fromkeys(names)
        missing -= found.keys()
        of_interest = [column for column in wanted if column in found]
    for row in read_rows(file, columns=of_interest, bad_row=bad_row):
        rows += 1
        missing -= row.keys()
        if rows <= _ROWS_FOR_NAMES:
            found |= dict.fromkeys(row)
    if not rows:
        raise CohegraphError(f"{file} has no rows.", code="no-rows")
    for column in wanted:
        if column in missing and found:
            raise missing_column(file, column, found)
    return rows


def missing_column(place: object, column: str, found: Iterable[str]) -> CohegraphError:
    """The error of a table without a column."""
    names = ", ".join(found)
    return CohegraphError(f"{place} has no column '{column}': its columns are {names}.", code="missing-column")


def read_rows(
    file: Path,
    *,
    columns: Iterable[str] | None = None,
    optional: Iterable[str] = (),
    legacy: bool = False,
    bad_row: BadRow = refuse,
) -> Iterator[Row]:
    """The rows of a table by column, one after the other.

    Where only some ``columns`` are wanted, which must be there, and some that are ``optional``, others may be left out.
    ``legacy`` reads Windows-1252 and stray quotation marks in CSV and TSV too. ``bad_row`` says what becomes of a row
    that cannot be read in a table whose others can.
    """
    _must_exist(file)
    ending = _ending(file)
    if ending not in TABLE_ENDINGS:
        endings = ", ".join(TABLE_ENDINGS)
        raise CohegraphError(f"{file} is not a table that can be read: it must end in {endings}.", code="not-a-table")
    if ending == ".parquet":
        yield from _parquet(file, columns, optional)
    elif ending.startswith((".jsonl", ".ndjson")):
        yield from _json_lines(file, bad_row)
    else:
        yield from _separated(file, "\t" if ending.startswith(".tsv") else ",", legacy, bad_row)


def _check_names(file: Path, names: Sequence[str]) -> None:
    if len(set(names)) < len(names):
        raise DamagedFileError(f"{file} has two columns of the same name: give each its own.", code="same-columns")


@contextmanager
def _parquet_file(file: Path) -> Iterator[Any]:
    import pyarrow
    import pyarrow.parquet

    try:
        yield pyarrow.parquet.ParquetFile(file)
    except (pyarrow.ArrowException, OSError, ValueError, OverflowError) as error:
        raise DamagedFileError(f"{file} is not a Parquet file that can be read: {str(error).splitlines()[0]}") from None


def _parquet(file: Path, columns: Iterable[str] | None, optional: Iterable[str]) -> Iterator[Row]:
    with _parquet_file(file) as table:
        also = [name for name in optional if name in table.schema_arrow.names]
        wanted = None if columns is None else [*columns, *also]
        for batch in table.iter_batches(_ROWS_AT_ONCE, columns=wanted):
            yield from batch.to_pylist()


def _json_lines(file: Path, bad_row: BadRow) -> Iterator[Row]:
    with _opened(file, "rb") as stream:
        place = 0
        for number, line in enumerate(stream, start=1):
            if b"\0" in line:
                raise _binary(str(file))
            begins = len(codecs.BOM_UTF8) if number == 1 and line.startswith(codecs.BOM_UTF8) else 0
            if line.strip():
                row: Any = None
                try:
                    row = json.loads(line[begins:].decode("utf-8"))
                except UnicodeDecodeError as error:
                    row = bad_row(_not_utf8(f"{file}, line {number}", place + begins + error.start))
                except (ValueError, RecursionError):
                    pass
                if not isinstance(row, dict):
                    row = bad_row(DamagedFileError(f"{file}, line {number} is not a JSON object."))
                yield row
            place += len(line)


def _separated(file: Path, delimiter: str, legacy: bool, bad_row: BadRow) -> Iterator[Row]:
    csv.field_size_limit(_LONGEST_FIELD)
    lines = io.StringIO(read_plain_text(file, legacy=True), newline="") if legacy else _lines(file)
    try:
        reader = csv.DictReader(lines, delimiter=delimiter, strict=not legacy)
        _check_names(file, reader.fieldnames or [])
        for row in reader:
            if None in row:
                place = f"{file}, line {reader.line_num}"
                row = bad_row(
                    DamagedFileError(f"{place} has more fields than columns: put texts into quotation marks.")
                )
            yield row
    except csv.Error as error:
        raise DamagedFileError(f"{file} is not a table that can be read: {error}.") from None


@contextmanager
def _opened(file: Path, mode: str, **how: Any) -> Iterator[IO[Any]]:
    try:
        is_compressed = file.suffix.lower() == _COMPRESSED
        opener: Any = partial(gzip.open, file) if is_compressed else file.open
        with opener(mode, **how) as stream:
            yield stream
    except (gzip.BadGzipFile, EOFError, zlib.error):
        raise DamagedFileError(f"{file} is not a whole file of gzip: compress it again.") from None
    except OSError as error:
        raise CohegraphError(f"{file} cannot be read: {error.strerror}.", code="cannot-read") from None


def _lines(file: Path) -> Iterator[str]:
    """The lines of a file in UTF-8 with their ends, one after the other."""
    with _opened(file, "rt", encoding="utf-8-sig", newline="") as stream:
        try:
            for line in stream:
                if "\0" in line:
                    raise _binary(str(file))
                yield line
        except UnicodeDecodeError:
            raise _not_utf8(str(file), _first_wrong_byte(file)) from None


def _first_wrong_byte(file: Path) -> int:
    place = 0
    with _opened(file, "rb") as stream:
        for line in stream:
            try:
                line.decode("utf-8")
            except UnicodeDecodeError as error:
                return place + error.start
            place += len(line)
    return place


def decoded(content: bytes, name: str) -> str:
    """The text of bytes in UTF-8; ``name`` says in an error what they are."""
    if b"\0" in content[:100_000]:
        raise _binary(name)
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise _not_utf8(name, error.start) from None


def _binary(name: str) -> CohegraphError:
    return CohegraphError(f"{name} is binary, not text: save the text as plain UTF-8.", code="binary")


def _not_utf8(name: str, place: int) -> CohegraphError:
    return CohegraphError(f"{name} is not UTF-8 (byte {place}): save it as plain UTF-8 text.", code="not-utf-8")


def _must_exist(file: Path) -> None:
    try:
        is_folder, exists = file.is_dir(), file.exists()
    except OSError as error:
        raise CohegraphError(f"'{file}' cannot be read: {error.strerror}.", code="cannot-read") from None
    if is_folder:
        raise CohegraphError(f"{file} is a folder, not a file.", code="is-a-folder")
    if not exists:
        raise CohegraphError(f"There is no file {file}.", code="missing-file")


def is_missing(value: Any) -> bool:
    """Whether a field is empty."""
    return value is None or (value != value) is True or (isinstance(value, str) and not value.strip())
