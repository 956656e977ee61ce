"""Results as rows: one JSON object a line, appended and synced as each utterance ends.

A process killed while it writes leaves at most one torn last line; opening the store cuts it off.
A full disk stops the run with one sentence, and what was written before it stays readable.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

from pcg.errors import PcgError

try:
    import fcntl
except ImportError:  # not on Windows: two runs into one file are then not caught
    fcntl = None  # type: ignore[assignment]

Row = dict[str, Any]


def read_rows(path: Path) -> list[Row]:
    """All whole rows of a JSONL file; a torn last line is ignored, a torn middle is an error."""
    if not path.exists():
        return []
    lines = path.read_bytes().split(b"\n")
    rows: list[Row] = []
    for number, line in enumerate(lines[:-1], start=1):
        try:
            rows.append(json.loads(line))
        except ValueError as error:
            raise PcgError(f"{path.name} is damaged in line {number}: delete that line.") from error
    return rows


def latest(rows: Iterable[Row]) -> list[Row]:
    """One row a key, the last one written, ordered by key: a retried failure replaces itself."""
    by_key = {str(row["key"]): row for row in rows}
    return [by_key[key] for key in sorted(by_key)]


class RowStore:
    """Append-only rows with a lock, so that two runs cannot write into one file.

    Use as a context manager. ``done`` holds the keys that need no work again.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.done: set[str] = set()
        self._file: int | None = None

    def __enter__(self) -> RowStore:
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._file = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o644)
        except OSError as error:
            raise PcgError(f"Cannot write {self.path}: {error.strerror}.") from error
        try:
            if fcntl is not None:
                fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise PcgError(
                f"Another run is writing {self.path.name}: wait or use --out."
            ) from error
        self._cut_torn_line()
        self.done = {str(row["key"]) for row in read_rows(self.path) if row["status"] == "ok"}
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def append(self, row: Mapping[str, Any]) -> None:
        """Write one row and wait until it is on disk.

        Raises PcgError when the disk is full; the partial line is taken back first.
        """
        assert self._file is not None, "RowStore is used as a context manager"
        line = json.dumps(row, separators=(",", ":"), sort_keys=True, allow_nan=False) + "\n"
        start = os.lseek(self._file, 0, os.SEEK_END)
        try:
            data = memoryview(line.encode())
            while data:
                data = data[os.write(self._file, data) :]
            os.fsync(self._file)
        except OSError as error:
            os.ftruncate(self._file, start)
            raise PcgError(
                f"Cannot write {self.path}: {error.strerror}. The rows before are safe: "
                "make room and run the same command again."
            ) from error
        if row["status"] == "ok":
            self.done.add(str(row["key"]))

    def _cut_torn_line(self) -> None:
        assert self._file is not None
        data = self.path.read_bytes()
        if data and not data.endswith(b"\n"):
            os.ftruncate(self._file, data.rfind(b"\n") + 1)


def flatten(row: Row, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Nested mappings as dotted columns; lists as JSON text."""
    for name, value in row.items():
        if isinstance(value, dict):
            yield from flatten(value, f"{prefix}{name}.")
        else:
            yield prefix + name, json.dumps(value) if isinstance(value, list) else value


def write_parquet(rows: list[Row], path: Path) -> Path | None:
    """Write rows as one table; None when pyarrow is not installed."""
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        return None
    flat = [dict(flatten(row)) for row in rows]
    columns = sorted({name for row in flat for name in row})
    table = pa.table({name: _column([row.get(name) for row in flat]) for name in columns})
    try:
        pq.write_table(table, path)
    except OSError as error:
        raise PcgError(f"Cannot write {path.name}: {error.strerror or error}.") from error
    return path


def _column(values: list[Any]) -> list[Any]:
    """One type a column: numbers together become floats, anything mixed becomes text."""
    kinds = {type(value) for value in values if value is not None}
    if kinds == {int, float}:
        return [None if value is None else float(value) for value in values]
    if len(kinds) > 1:
        return [None if value is None else str(value) for value in values]
    return values
