"""The judging benchmark at a small size: that it measures, says what it measured, and repeats."""

import json
from pathlib import Path

import pytest
import torch

from pcg.__main__ import main
from pcg.acceptance import REGISTRY
from pcg.bench import judge
from pcg.commands import bench

SMALL = ["--codes", "512", "--width", "16", "--mean-group", "9", "--rounds", "6"]


def test_every_rule_is_timed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "deep" / "judge.json"
    words = ["bench", "judge", *SMALL, "--dense-codes", "128", "--json", "--out", str(out)]
    main([*words, "--forward-ms", "1000000"])
    report = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert report == json.loads(out.read_text())
    assert set(report["rules"]) == set(REGISTRY) - {"target"}
    for found in report["rules"].values():
        assert found["ms"] > 0
        assert 0 <= found["acceptance"] <= 1
    assert report["groups"]["mean"] == pytest.approx(9, rel=0.5)
    assert report["build"]["pairs"] > 0
    assert report["dense"]["codes"] == 128
    assert {"cpu", "torch", "dtype", "threads", "seed"} <= set(report["setting"])


def test_a_rule_that_is_too_slow_fails_the_command() -> None:
    words = ["judge", *SMALL, "--no-build", "--forward-ms", "0.0001"]
    assert main(["bench", *words]) == 1


def test_random_groups_have_the_size_asked_for() -> None:
    groups = judge.banded_groups(300, 21)
    assert groups.stats()["mean"] == 21
    assert groups.members(0).tolist() == [*range(11), *range(290, 300)]
    assert groups.members(300).tolist() == [300]
    member = torch.zeros(301, 301, dtype=torch.bool)
    member[groups.rows, groups.indices.long()] = True
    assert torch.equal(member, member.T)


@pytest.mark.parametrize("words", [["--codes", "9"], ["--mean-group", "0"], ["--lookahead", "0"]])
def test_bad_settings(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "judge", *words]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_the_benchmarks_are_found() -> None:
    assert "judge" in bench.names()
