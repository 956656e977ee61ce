"""Corpora: seeded selection, clear refusals."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import soundfile

from pcg.errors import PcgError
from pcg.evaluation import manifest


def corpus(folder: Path, readers: int = 3, each: int = 5) -> Path:
    for reader in range(readers):
        for i in range(each):
            name = f"{reader}_1_{i:06d}_000000"
            path = folder / str(reader) / "1" / f"{name}.wav"
            path.parent.mkdir(parents=True, exist_ok=True)
            soundfile.write(path, np.zeros(24000 * (3 + i)), 24000)
            path.with_suffix(".normalized.txt").write_text(f"Sentence {i} of reader {reader}.")
    return folder


def test_libritts_selection_is_seeded_and_crosses_sentences(tmp_path: Path) -> None:
    folder = corpus(tmp_path)
    first, again = manifest.libritts(folder, 6, 1), manifest.libritts(folder, 6, 1)
    assert first == again != manifest.libritts(folder, 6, 2)
    for utterance in first:
        assert utterance.prompt != utterance.audio
        assert Path(utterance.prompt).name.split("_")[0] == utterance.id.split("_")[0]
        assert utterance.transcript != utterance.text
    with pytest.raises(PcgError, match="usable"):
        manifest.libritts(folder, 500)


def test_csv(tmp_path: Path) -> None:
    path = tmp_path / "list.csv"
    path.write_text("prompt,transcript,text\na.wav,Hello there.,How are you?\nb.wav,,Fine.\n")
    first, second = manifest.from_csv(path)
    assert first.prompt == str(tmp_path / "a.wav") and first.id == "r00001"
    assert second.transcript == ""
    path.write_text("audio,words\n")
    with pytest.raises(PcgError, match="columns"):
        manifest.from_csv(path)
    path.write_text("prompt,transcript,text\na.wav,Hello.,\n")
    with pytest.raises(PcgError, match="no text"):
        manifest.from_csv(path)
    path.write_text("id,prompt,transcript,text\nx,a,b,c\nx,a,b,c\n")
    with pytest.raises(PcgError, match="same id"):
        manifest.from_csv(path)


def test_bundled_sentences_cycle_through_voices() -> None:
    found = manifest.bundled(60, ["ada", "ben", "cid"])
    assert len({utterance.id for utterance in found}) == 60
    assert len({(utterance.text, utterance.voice) for utterance in found}) == 60
    assert {utterance.voice for utterance in found} == {"ada", "ben", "cid"}
    with pytest.raises(PcgError, match="fewer"):
        manifest.bundled(10_000, ["ada"])
