"""Rows survive torn lines, full disks and a second writer."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from shutil import which

import pytest

from pcg.errors import PcgError
from pcg.evaluation.rows import RowStore, latest, read_rows, write_parquet
from tests.evaluation.test_runner import evaluate


def row(key: str, status: str = "ok", **more: object) -> dict[str, object]:
    return {"key": key, "status": status, **more}


def test_rows_come_back_and_failures_are_not_done(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    with RowStore(path) as store:
        store.append(row("a"))
        store.append(row("b", "failed", error="no sound"))
    with RowStore(path) as store:
        assert store.done == {"a"}
        store.append(row("b"))
    assert [r["status"] for r in latest(read_rows(path))] == ["ok", "ok"]


def test_torn_last_line_is_cut(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    with RowStore(path) as store:
        store.append(row("a"))
    with path.open("ab") as file:
        file.write(b'{"key":"b","sta')
    assert len(read_rows(path)) == 1
    with RowStore(path) as store:
        assert store.done == {"a"}
        store.append(row("c"))
    assert [r["key"] for r in read_rows(path)] == ["a", "c"]


def test_damage_in_the_middle_is_told(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text('{"key":"a","status":"ok"}\nnonsense\n{"key":"b","status":"ok"}\n')
    with pytest.raises(PcgError, match="line 2"):
        read_rows(path)


def test_two_runs_cannot_write_one_file(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    with RowStore(path), pytest.raises(PcgError, match="Another run"), RowStore(path):
        pass


@contextmanager
def small_disk(folder: Path, size: str) -> Iterator[Path]:
    """A tmpfs of ``size``; skips where mounting needs rights that are missing."""
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)]
    if which("mount") is None or subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("mounting a small tmpfs needs root")
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def enlarge(folder: Path) -> None:
    subprocess.run(["mount", "-o", "remount,size=4m", str(folder)], check=True)


def test_full_disk_stops_with_one_sentence_and_keeps_rows(tmp_path: Path) -> None:
    with small_disk(tmp_path / "small", "64k") as mount:
        path, written = mount / "rows.jsonl", 0
        with pytest.raises(PcgError, match="rows before are safe"), RowStore(path) as store:
            while True:
                store.append(row(f"k{written}", text="x" * 1000))
                written += 1
        assert written > 10
        assert [r["key"] for r in read_rows(path)] == [f"k{i}" for i in range(written)]
        enlarge(mount)
        with RowStore(path) as store:
            assert len(store.done) == written
            store.append(row("after"))
        assert len(read_rows(path)) == written + 1


def test_a_run_on_a_full_disk_resumes_to_the_same_table(tmp_path: Path) -> None:
    whole = evaluate(tmp_path / "whole", n=40)
    with small_disk(tmp_path / "small", "48k") as mount:
        with pytest.raises(PcgError, match="Cannot write"):
            evaluate(mount, n=40)
        assert 0 < len(read_rows(mount / "rows.jsonl")) < len(whole)
        enlarge(mount)
        assert evaluate(mount, n=40) == whole


def test_parquet_holds_every_row(tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    rows = [
        row("a", wer={"errors": 1}),
        row("b", "failed", error="x"),
        row("c", wer={"errors": 0.5}),
    ]
    assert write_parquet(rows, tmp_path / "rows.parquet")
    table = parquet.read_table(tmp_path / "rows.parquet").to_pydict()
    assert table["key"] == ["a", "b", "c"]
    assert table["wer.errors"] == [1.0, None, 0.5]
