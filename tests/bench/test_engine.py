"""The benchmarks run at tiny size and store what they say they store."""

import argparse
import json

import pytest

from pcg import testing
from pcg.bench import engine, gpu
from pcg.errors import PcgError


def run(module, *words):
    parser = argparse.ArgumentParser()
    module.add_parser(parser.add_subparsers())
    args = parser.parse_args(list(words))
    return args.run(args)


def test_the_engine_is_measured_against_transformers(tmp_path, capsys):
    folder = testing.tiny_bundled(tmp_path / "model", n_codes=200)
    out = tmp_path / "engine.json"
    words = ["engine", "--model", str(folder), "--device", "cpu", "--dtype", "int8"]
    assert run(engine, *words, "--turns", "2", "--tokens", "12", "-o", str(out), "--json") == 0
    result = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert result == json.loads(out.read_text())
    assert len(result["sides"]) == 6
    assert set(result["ratios"]) == set(result["cpu_ratios"]) == set(engine.RATIOS)
    assert all(value > 0 for value in result["ratios"].values())
    assert result["where"]["target"]["dtype"] == "int8"
    assert result["where"]["transformers_dtype"] == "float32"
    assert result["costs"]["c"] > 0 and result["costs"]["v"] > 0
    for name in ("SD", "PCG"):
        assert 0 <= result[name]["alpha"] <= 1
        assert result[name]["expected_with_sampling_and_judging"] > 0
    with pytest.raises(PcgError, match="at least one turn"):
        run(engine, *words, "--turns", "0")
    with pytest.raises(PcgError, match="needs a draft"):
        run(engine, *words, "--draft", "none")


def test_the_gpu_script_runs_at_tiny_size(tmp_path, capsys):
    out = tmp_path / "gpu.json"
    words = ["--device", "cpu", "--tokens", "12", "--prompt", "20", "--turns", "1"]
    assert run(gpu, "gpu", "--sizes", "tiny", *words, "--gbps", "10", "-o", str(out)) == 0
    result = json.loads(out.read_text())["tiny"]
    assert result["dtype"] == "float32"
    assert set(result["rates"]) == {"target-only", "SD", "PCG"}
    assert set(result["transformers"]) == {"generate", "assisted"}
    assert result["bandwidth_share"] > 0 and result["costs"]["c"] < 1.5
    with pytest.raises(PcgError, match="no size"):
        run(gpu, "gpu", "--sizes", "huge")
