"""Making tests: loudness, manifests, sharing, and refusals."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path

import numpy as np
import pytest
import soundfile

from pcg.errors import PcgError
from pcg.listening import loudness as level
from pcg.listening.sources import (
    Recording,
    build_study,
    demo_recordings,
    from_outputs,
    pack,
    read_folder,
    unpack,
)
from pcg.listening.study import load_study, save_study, study_from_json

RATE = 16000


def noise(seconds=1.0, scale=0.1, rate=RATE, seed=0):
    return np.random.default_rng(seed).normal(0, scale, int(seconds * rate)).astype(np.float32)


def write(folder: Path, name: str, **kw) -> None:
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    soundfile.write(folder / name, noise(**kw), kw.get("rate", RATE))


def test_all_clips_have_one_loudness_and_none_clips(tmp_path):
    sounds = [
        Recording("i", name, noise(scale=scale), RATE) for name, scale in (("a", 0.003), ("b", 0.3))
    ]
    spike = noise(scale=0.01)
    spike[100] = 0.9
    study = build_study([*sounds, Recording("i", "c", spike, RATE)], tmp_path, kind="mos")
    levels, peaks = [], []
    for clip in study.items[0].clips.values():
        samples, rate = level.read_wav((tmp_path / "clips" / clip.file).read_bytes())
        levels.append(level.loudness(samples / 32767, rate))
        peaks.append(np.abs(samples).max() / 32767)
    assert max(levels) - min(levels) < 0.1
    assert max(peaks) <= 0.981
    assert abs(levels[0] - study.loudness) < 0.1 and study.loudness < -23


@pytest.mark.parametrize("seconds", [0.02, 0.2, 0.4])
def test_clips_shorter_than_a_block_can_be_measured(seconds):
    short, long = level.loudness(noise(seconds), RATE), level.loudness(noise(3.0), RATE)
    assert abs(short - long) < 1.5


def test_silence_and_emptiness_are_refused():
    for audio in (np.zeros(RATE, np.float32), np.zeros(0, np.float32)):
        with pytest.raises(PcgError):
            level.loudness(audio, RATE)


def test_rates_and_channels_are_brought_together(tmp_path):
    stereo = np.stack([noise(rate=24000), noise(rate=24000, seed=1)], axis=1)
    whole = (noise() * 32767).astype(np.int16)
    study = build_study(
        [Recording("i", "a", stereo, 24000), Recording("i", "b", whole, RATE)], tmp_path, kind="ab"
    )
    assert study.sample_rate == 24000
    assert all(abs(clip.seconds - 1) < 0.01 for clip in study.items[0].clips.values())


def test_file_names_carry_no_system_name(tmp_path):
    study = build_study(demo_recordings(2, systems=("alpha", "beta")), tmp_path, kind="ab")
    names = " ".join(path.name for path in (tmp_path / "clips").iterdir())
    assert "alpha" not in names and "beta" not in names
    assert not any(b"alpha" in path.read_bytes() for path in (tmp_path / "clips").iterdir())
    assert load_study(tmp_path) == study


def test_folder_layouts_and_manifest(tmp_path):
    for name in ("sd/one.wav", "pcg/one.wav"):
        write(tmp_path / "tree", name)
    for name in ("one__sd.wav", "one__pcg.flac"):
        write(tmp_path / "flat", name)
    write(tmp_path / "listed", "x.wav")
    (tmp_path / "listed" / "manifest.csv").write_text(
        "file,item,system,text,practice\nx.wav,one,sd,Hello.,yes\n"
    )
    for folder in ("tree", "flat"):
        assert {(r.item, r.system) for r in read_folder(tmp_path / folder)} == {
            ("one", "sd"),
            ("one", "pcg"),
        }
    (row,) = read_folder(tmp_path / "listed")
    assert (row.item, row.system, row.text, row.practice) == ("one", "sd", "Hello.", True)


def test_a_manifest_cannot_reach_outside(tmp_path):
    write(tmp_path, "secret.wav")
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "manifest.jsonl").write_text(
        json.dumps({"file": "../secret.wav", "item": "i", "system": "s"})
    )
    with pytest.raises(PcgError, match="outside"):
        read_folder(folder)


@pytest.mark.parametrize("text", ["a,b\n1,2\n", "file,item,system\nmissing.wav,i,s\n"])
def test_bad_manifests_say_so(tmp_path, text):
    (tmp_path / "manifest.csv").write_text(text)
    with pytest.raises(PcgError):
        read_folder(tmp_path)


def test_outputs_of_compare(tmp_path):
    outputs = [
        {"system": name, "audio": (RATE, noise(seed=place)), "text": "Hello."}
        for place, name in enumerate(("sd", "pcg", "ssd"))
    ]
    study = build_study(from_outputs(outputs), tmp_path, kind="ab", reveal="each")
    assert study.items[0].text == "Hello." and len(study.pairs) == 3


def test_mushra_gets_a_low_anchor_below_3500_hz(tmp_path):
    study = build_study(
        demo_recordings(1, 1.0, systems=("ref", "x")), tmp_path, kind="mushra", reference="ref"
    )
    clip = study.items[0].clips[study.anchor]
    samples, rate = level.read_wav((tmp_path / "clips" / clip.file).read_bytes())
    power = np.abs(np.fft.rfft(samples)) ** 2
    high = np.fft.rfftfreq(len(samples), 1 / rate) > 4500
    assert power[high].sum() < 1e-3 * power.sum()


def test_a_test_can_be_shared_and_reopened(tmp_path):
    study = build_study(demo_recordings(2), tmp_path / "a", kind="abx", seed=9, practice=1)
    opened = unpack(pack(tmp_path / "a"), tmp_path / "b")
    assert opened == study == load_study(tmp_path / "b" / "study.json")
    again = unpack(pack(tmp_path / "b"), tmp_path / "c", new_id="fresh1")
    assert again.id == "fresh1" and load_study(tmp_path / "c").id == "fresh1"


def test_a_zip_writes_only_what_the_test_names(tmp_path):
    build_study(demo_recordings(1), tmp_path / "a", kind="ab")
    data = io.BytesIO(pack(tmp_path / "a"))
    with zipfile.ZipFile(data, "a") as archive:
        archive.writestr("../evil.txt", "x")
        archive.writestr("clips/evil.sh", "x")
    unpack(data.getvalue(), tmp_path / "b")
    assert sorted(path.suffix for path in (tmp_path / "b").rglob("*") if path.is_file()) == [
        ".json",
        ".wav",
        ".wav",
    ]
    assert not (tmp_path / "evil.txt").exists()
    with pytest.raises(PcgError):
        unpack(b"not a zip", tmp_path / "c")


@pytest.mark.parametrize(
    "change",
    [{"kind": "best"}, {"version": 2}, {"items": []}, {"systems": ["a"]}, {"heard_fraction": 0},
     {"reveal": "now"},
     {"passes": 9}, {"id": "../x"}, {"pairs": [["clean", "nobody"]]}, {"unknown": 1}, {"items": 3}],
)  # fmt: skip
def test_bad_definitions_are_refused(tmp_path, change):
    study = build_study(demo_recordings(1), tmp_path, kind="ab")
    with pytest.raises(PcgError):
        study_from_json({**study.to_json(), **change})


def test_clip_names_in_a_definition_cannot_be_paths(tmp_path):
    study = build_study(demo_recordings(1), tmp_path, kind="ab")
    data = json.loads(save_study(study, tmp_path).read_text())
    data["items"][0]["clips"]["clean"]["file"] = "../../etc/passwd"
    with pytest.raises(PcgError):
        study_from_json(data)
