"""A run resumes after any death, and every backend gives the same rows."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from pcg.errors import PcgError
from pcg.evaluation import runner
from pcg.evaluation.arms import Options
from pcg.evaluation.rows import Row
from tests.evaluation.fake import FakeReplica

KILLS = int(os.environ.get("TEST_KILLS", "3"))


def evaluate(
    folder: Path, experiment: str = "table1", n: int = 10, model: str = "fake", **more: Any
) -> list[Row]:
    options = Options(model=model, n=n)
    return runner.run(
        experiment, options, folder, factory=FakeReplica, say=lambda text: None, **more
    )  # type: ignore[arg-type]


def untimed(rows: list[Row]) -> list[Row]:
    return [{name: value for name, value in row.items() if name != "time"} for row in rows]


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory: pytest.TempPathFactory) -> list[Row]:
    return evaluate(tmp_path_factory.mktemp("unbroken"))


def test_a_second_call_does_nothing(tmp_path: Path, unbroken: list[Row]) -> None:
    assert evaluate(tmp_path) == unbroken
    size = (tmp_path / "rows.jsonl").stat().st_size
    assert evaluate(tmp_path) == unbroken
    assert (tmp_path / "rows.jsonl").stat().st_size == size


def test_other_options_are_refused(tmp_path: Path) -> None:
    evaluate(tmp_path, n=2)
    with pytest.raises(PcgError, match="other options"):
        evaluate(tmp_path, n=3)


def test_killed_runs_resume_to_the_same_table(tmp_path: Path) -> None:
    """kill -9 at random times, then the plain run: the table of an unbroken run."""
    whole = evaluate(tmp_path / "whole", model="slow")
    code = (
        "from tests.evaluation.test_runner import evaluate; from pathlib import Path; "
        f"evaluate(Path({str(tmp_path / 'broken')!r}), model='slow')"
    )
    rng, path, killed = random.Random(0), tmp_path / "broken" / "rows.jsonl", 0
    for _ in range(KILLS):
        before = path.stat().st_size if path.exists() else 0
        child = subprocess.Popen([sys.executable, "-c", code], cwd=Path(__file__).parents[2])
        while child.poll() is None and (path.stat().st_size if path.exists() else 0) == before:
            time.sleep(0.005)
        time.sleep(rng.random() * 0.1)
        child.send_signal(signal.SIGKILL)
        killed += child.wait() == -signal.SIGKILL
    assert killed
    assert evaluate(tmp_path / "broken", model="slow") == whole


def test_processes_give_the_same_rows(tmp_path: Path, unbroken: list[Row]) -> None:
    rows = evaluate(tmp_path, workers=2)
    assert untimed(rows) == untimed(unbroken)
    assert not any(row["time"]["own_device"] for row in rows)
    assert all(row["time"]["own_device"] for row in unbroken)


def test_a_worker_that_dies_is_replaced_and_its_task_tried_again(tmp_path: Path) -> None:
    rows = evaluate(tmp_path, n=4, model=f"die-once:{tmp_path / 'died'}", workers=2)
    assert (tmp_path / "died").exists() and len(rows) == 20
    assert all(row["status"] == "ok" for row in rows)


def test_a_task_that_kills_workers_becomes_failed_rows(tmp_path: Path) -> None:
    rows = evaluate(tmp_path, n=4, model="die:b0002", workers=2)
    failed = [row for row in rows if row["status"] == "failed"]
    assert {row["utterance"] for row in failed} == {"b0002"}
    assert len(failed) == 5 and len(rows) == 20
    assert "exit code -9" in failed[0]["error"]


@pytest.mark.skipif(not os.environ.get("TEST_RAY"), reason="set TEST_RAY=1 (needs ray)")
def test_ray_with_two_actors_gives_the_same_rows(tmp_path: Path, unbroken: list[Row]) -> None:
    pytest.importorskip("ray")
    assert untimed(evaluate(tmp_path / "same", workers=2, ray="local")) == untimed(unbroken)
    once = evaluate(
        tmp_path / "once", n=4, model=f"die-once:{tmp_path / 'died'}", workers=2, ray="local"
    )
    assert len(once) == 20 and all(row["status"] == "ok" for row in once)
    rows = evaluate(tmp_path / "dies", n=4, model="die:b0002", workers=2, ray="local")
    failed = [row for row in rows if row["status"] == "failed"]
    assert len(rows) == 20 and {row["utterance"] for row in failed} == {"b0002"}


def test_ray_missing_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(PcgError, match="pip install ray"):
        evaluate(tmp_path, n=2, ray="local")


@pytest.mark.parametrize("experiment", ["table2", "table3", "figure4", "theta", "drift", "bundled"])
def test_every_experiment_runs_to_its_end(tmp_path: Path, experiment: str) -> None:
    rows = evaluate(tmp_path, experiment, n=3)
    assert rows and all(row["status"] == "ok" for row in rows)
