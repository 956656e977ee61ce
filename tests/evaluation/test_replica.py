"""The real replica on a tiny random model: every kind of arm, and failures as rows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile

from pcg.commands import evaluate as command
from pcg.evaluation import runner
from pcg.evaluation.arms import Arm, Options
from pcg.evaluation.manifest import Utterance
from pcg.evaluation.replica import Replica
from pcg.evaluation.rows import Row
from pcg.testing import speech_like, tiny_bundled

TEXT = "Hello there."


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_bundled(tmp_path_factory.mktemp("model"))


@pytest.fixture(scope="module")
def replica(folder: Path) -> Replica:
    return Replica(options(folder))


def options(folder: Path, **more: Any) -> Options:
    defaults = {"n": 2, "max_seconds": 1.0, "mos": False, "theta": 0.25}
    return Options(model=str(folder), **{**defaults, **more})


def voice(replica: Replica) -> str:
    return min(replica.voices)


def test_speak_row_says_everything(replica: Replica) -> None:
    utterance = Utterance("b0", TEXT, voice(replica))
    arm = Arm("pcg", "PCG", rule="pcg", params={"theta": 0.25})
    row = replica.row(utterance, arm)
    assert row["status"] == "ok", row
    assert 0 <= row["decode"]["acceptance_rate"] <= 1 and row["decode"]["tokens"] > 0
    assert row["time"]["own_device"] and row["time"]["decode"] > 0
    assert row["wer"]["words"] == 2 and "tiny.en" in row["wer"]["model"]
    assert "Resemblyzer" in row["similarity"]["model"]
    again = replica.row(utterance, arm)
    assert again["audio_seconds"] == row["audio_seconds"] and again["codes_sha"] == row["codes_sha"]
    json.dumps(row, allow_nan=False)


def test_swap_and_drift_rows(replica: Replica) -> None:
    utterance = Utterance("b0", TEXT, voice(replica))
    swap = Arm("swap", "", "swap", params={"theta": 0.1, "share": 0.5}, lookahead=0, judged=False)
    row = replica.row(utterance, swap)
    assert row["status"] == "ok", row
    assert row["swap"]["realised"] == pytest.approx(0.5, abs=0.1)
    row = replica.row(utterance, Arm("drift", "", "drift", judged=False))
    assert row["status"] == "ok", row
    drift = row["drift"]
    assert drift["positions"] > 0
    assert drift["ssd"]["acceptance"] == pytest.approx(drift["pcg"]["acceptance"], rel=0.01)


def test_mel_groups_that_are_missing_are_a_failed_row(replica: Replica) -> None:
    if replica.model.mel_groups is not None:
        pytest.skip("this model has Mel groups")
    arm = Arm("mel", "", rule="pcg", params={"theta": 0.25}, groups="mel")
    row = replica.row(Utterance("b0", TEXT, voice(replica)), arm)
    assert row["status"] == "failed" and "Mel groups" in row["error"]


def test_bad_inputs_are_rows_and_the_rest_goes_on(folder: Path, tmp_path: Path) -> None:
    soundfile.write(tmp_path / "good.wav", speech_like(2.0), 16_000)
    (tmp_path / "corrupt.wav").write_bytes(b"RIFF not a wave at all")
    (tmp_path / "list.csv").write_text(
        "id,prompt,transcript,text\n"
        f"good,good.wav,a short test sentence,{TEXT}\n"
        f"corrupt,corrupt.wav,a short test sentence,{TEXT}\n"
        f"mute,good.wav,,{TEXT}\n"
        f"gone,gone.wav,a short test sentence,{TEXT}\n"
    )
    chosen = options(folder, n=4, source=f"csv:{tmp_path / 'list.csv'}", rules=("target", "sd"))
    rows = runner.run("table1", chosen, tmp_path / "run", say=lambda text: None)
    status = {row["key"]: row["status"] for row in rows}
    assert status == {
        f"{name}/{arm}": "ok" if name == "good" else "failed"
        for name in ("good", "corrupt", "mute", "gone")
        for arm in ("target", "sd")
    }
    errors = {row["utterance"]: row["error"] for row in rows if row["status"] == "failed"}
    assert "transcript" in errors["mute"]
    assert all(error for error in errors.values())


def untimed(rows: list[Row]) -> list[Row]:
    return [{name: value for name, value in row.items() if name != "time"} for row in rows]


def test_processes_agree_with_one_process(folder: Path, tmp_path: Path) -> None:
    chosen = options(folder, rules=("target", "pcg"))
    one = runner.run("table1", chosen, tmp_path / "one", say=lambda text: None)
    two = runner.run("table1", chosen, tmp_path / "two", workers=2, say=lambda text: None)
    assert all(row["status"] == "ok" for row in one)
    assert untimed(one) == untimed(two)


def test_command_prints_json_last(folder: Path, tmp_path: Path, capsys: Any) -> None:
    import argparse

    parser = argparse.ArgumentParser()
    command.add_parser(parser.add_subparsers())
    args = parser.parse_args(
        f"evaluate drift --model {folder} --n 2 --max-seconds 1 --theta 0.25 "
        f"--out {tmp_path / 'run'} --json".split()
    )
    assert args.run(args) == 0
    summary = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert summary["experiment"] == "drift" and summary["drift"]["positions"] > 0
    assert (tmp_path / "run" / "summary.json").exists()
    assert np.isfinite(summary["drift"]["points"][0]["pcg_token_drift"])
