"""The whole training chain in miniature, by the documented commands, and its resuming."""

import json
from pathlib import Path

import numpy as np
import pytest

from pcg.__main__ import main
from pcg.commands.train import STEPS
from pcg.training.draft import parse_layers

pytest.importorskip("onnx", reason="making a voice needs the packages of requirements-dev.txt")


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_miniature_chain_makes_a_voice_that_loads_and_speaks(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    base = ["--work", str(tmp_path), "--small", "--workers", "1"]
    for step in STEPS[: STEPS.index("card")]:
        minutes = [] if step in ("corpus", "tokens", "assets") else ["--minutes", "0.08"]
        assert main(["train", step, *base, *minutes]) == 0, step
    printed = capsys.readouterr().out
    assert "shards" in printed
    assert "s left" in printed

    from pcg import catalog
    from pcg.synthesis import Finished, Request, speak
    from pcg.voices import bundled_voices

    folder = tmp_path / "bundled"
    model = catalog.load(folder)
    assert model.draft is not None
    voices = bundled_voices(folder / "voices")
    assert "heart" in {voice.name for voice in voices}
    request = Request("Good morning.", voices[0], rule="pcg", max_seconds=2.0)
    last = list(speak(model, request))[-1]
    assert isinstance(last, Finished)
    assert np.isfinite(last.audio).all()
    report = json.loads((folder / "draft" / "training.json").read_text())
    assert {"acceptance_start", "acceptance_data", "acceptance_distilled"} <= set(report)

    before = sorted(p.stat().st_mtime_ns for p in (tmp_path / "corpus").glob("*.npz"))
    assert main(["train", "corpus", *base]) == 0
    assert before == sorted(p.stat().st_mtime_ns for p in (tmp_path / "corpus").glob("*.npz"))


@pytest.mark.parametrize(
    ("layers", "expected"),
    [("first 2", [0, 1]), ("spread 3", [0, 4, 9]), ("spread 1", [0]), ("7,0,3", [0, 3, 7])],
)
def test_layers_are_named_in_three_ways(layers: str, expected: list[int]) -> None:
    assert parse_layers(layers, 10) == expected


@pytest.mark.parametrize("layers", ["", "first", "first 11", "first 0", "0,10", "-1", "all", "1.5"])
def test_layers_that_are_not_there_are_refused(layers: str) -> None:
    from pcg.errors import PcgError

    with pytest.raises(PcgError, match="Layers are"):
        parse_layers(layers, 10)
