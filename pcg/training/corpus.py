"""The synthetic corpus: sentences spoken by the teacher and by flite, as WORLD features.

Each shard is one ``.npz`` (features in float16, phonemes, durations, audio in int16) made from its
own seed, so that a run that was stopped goes on with the first shard that is missing. Further
voices are the same features warped (:data:`VOICES`); they cost nothing until they are encoded.
"""

from __future__ import annotations

import json
import random
import subprocess
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from pcg.codec import world
from pcg.errors import PcgError
from pcg.training.teacher import Teacher
from pcg.training.texts import corpus_texts

TOKEN_FRAMES = 4  # world frames a token: 25 ms
SHARD_UTTERANCES = 200
TEXT_SHARDS = 250
HELD_OUT_SHARDS = ("heart-045",)


@dataclass(frozen=True)
class CorpusVoice:
    """A voice: the speaker whose features it is made from, and how they are warped."""

    name: str
    speaker: str
    pitch: float = 1.0
    formants: float = 1.0
    tilt_db: float = 0.0
    held_out: bool = False


VOICES: dict[str, CorpusVoice] = {
    voice.name: voice
    for voice in (
        CorpusVoice("heart", "heart"),
        CorpusVoice("marlow", "heart", pitch=0.58, formants=0.85, tilt_db=-3.0),
        CorpusVoice("bruno", "heart", pitch=0.47, formants=0.80, tilt_db=2.0),
        CorpusVoice("alma", "heart", pitch=0.84, formants=0.93, tilt_db=3.0),
        CorpusVoice("pip", "heart", pitch=1.30, formants=1.17, tilt_db=1.0),
        CorpusVoice("wren", "heart", pitch=1.08, formants=1.08, tilt_db=-5.0),
        CorpusVoice("slt", "slt"),
        CorpusVoice("rms", "rms"),
        CorpusVoice("kal16", "kal16"),
        CorpusVoice("odile", "heart", pitch=0.70, formants=1.03, tilt_db=4.0, held_out=True),
        CorpusVoice("awb", "awb", held_out=True),
    )
}
SPEAKERS = {"heart": 10_000, "slt": 800, "rms": 800, "kal16": 400, "awb": 200}


@dataclass(frozen=True)
class Utterance:
    """One spoken sentence. ``durations`` in tokens of 25 ms: silence, each phoneme, silence."""

    text: str
    speaker: str
    phonemes: str
    durations: npt.NDArray[np.int64]
    features: npt.NDArray[np.float32]
    audio: npt.NDArray[np.float32]

    def in_voice(self, voice: CorpusVoice) -> npt.NDArray[np.float32]:
        """The features ``(frames, N_FEATURES)`` as ``voice`` would have spoken them."""
        return world.warp(self.features, voice.pitch, voice.formants, voice.tilt_db)


def flite(text: str, voice: str) -> npt.NDArray[np.float32]:
    """``text`` spoken by Debian's flite, float32 at 16 kHz."""
    import soundfile

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "speech.wav"
        try:
            subprocess.run(
                ["flite", "-voice", voice, "-t", text, "-o", str(path)],
                check=True,
                capture_output=True,
            )
        except (OSError, subprocess.CalledProcessError) as error:
            raise PcgError("flite does not run: install Debian's flite package.") from error
        audio, rate = soundfile.read(path, dtype="float32")
    if rate != world.SAMPLE_RATE:
        from scipy.signal import resample_poly

        audio = resample_poly(audio, world.SAMPLE_RATE, rate)
    return np.asarray(audio * (0.6 / max(float(np.abs(audio).max()), 1e-3)), np.float32)


def align(
    known: npt.NDArray[np.float32], durations: npt.NDArray[np.int64], other: npt.NDArray[np.float32]
) -> npt.NDArray[np.int64]:
    """Durations of ``other`` by dynamic time warping onto ``known``, whose durations are exact.

    Both are features ``(frames, N_FEATURES)`` of one text; the envelope's mean is taken out.
    """
    from librosa.sequence import dtw

    def shape(features: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        frames = len(features) // TOKEN_FRAMES
        bands = features[: frames * TOKEN_FRAMES, : world.N_BANDS]
        bands = bands.reshape(frames, TOKEN_FRAMES, -1).mean(1)[:, ::4]
        return (bands - bands.mean(0)) / (bands.std(0) + 0.1)

    one, two = shape(known), shape(other)
    _, path = dtw(one.T, two.T)
    path = path[::-1]
    ends = np.minimum(np.cumsum(durations), len(one)) - 1
    reached = np.searchsorted(path[:, 0], ends, side="right") - 1
    bounds = np.maximum.accumulate(path[reached, 1] + 1)
    bounds[-1] = len(two)
    return np.diff(np.concatenate([[0], bounds])).astype(np.int64)


def _make_shard(job: tuple[str, int, str, int, bool]) -> float:
    """Writes one shard; returns its seconds of speech."""
    speaker, index, folder_name, count, small = job
    folder = Path(folder_name)
    path = folder / f"{speaker}-{index:03d}.npz"
    if path.exists():
        return float(np.load(path)["lengths"].sum()) * world.FRAME_MS / 1000
    teacher = Teacher(folder)
    seed = sorted(SPEAKERS).index(speaker) * 1000 + index
    rng = random.Random(seed)
    texts = shard_texts(speaker, index, count, small)
    rows: list[Utterance] = []
    for number, text in enumerate(texts):
        taught = teacher.speak(text, speed=rng.uniform(0.88, 1.15), seed=seed * 1000 + number)
        features = world.analyse(taught.audio, taught.f0)
        audio, durations = taught.audio, taught.durations
        if speaker != "heart":
            audio = flite(text, speaker)
            other = world.analyse(audio)
            durations, features = align(features, durations, other), other
        rows.append(Utterance(text, speaker, taught.phonemes, durations, features, audio))
    _save(path, rows)
    return sum(len(row.audio) for row in rows) / world.SAMPLE_RATE


def shard_texts(speaker: str, index: int, count: int, small: bool = False) -> list[str]:
    """The sentences of a shard; no two shards of one speaker share their place in the list.

    ``small``: everyday sentences only, which need no WordNet."""
    if small:
        return corpus_texts(count, seed=index, everyday_share=1.0)
    offset = 0 if speaker == "heart" else 60 + 30 * sorted(SPEAKERS).index(speaker)
    return corpus_texts(SHARD_UTTERANCES * TEXT_SHARDS, seed=11)[
        (index + offset) % TEXT_SHARDS * SHARD_UTTERANCES :
    ][:count]


def _save(path: Path, rows: list[Utterance]) -> None:
    part = path.with_suffix(".part.npz")
    np.savez(
        part,
        features=np.concatenate([row.features for row in rows]).astype(np.float16),
        lengths=np.asarray([len(row.features) for row in rows]),
        audio=np.concatenate([(row.audio * 32767).astype(np.int16) for row in rows]),
        samples=np.asarray([len(row.audio) for row in rows]),
        durations=np.concatenate([row.durations for row in rows]),
        symbols=np.asarray([len(row.durations) for row in rows]),
        meta=np.frombuffer(
            json.dumps([[row.text, row.speaker, row.phonemes] for row in rows]).encode(), np.uint8
        ),
    )
    part.rename(path)


def load_shard(path: Path) -> list[Utterance]:
    """The utterances of one shard file."""
    with np.load(path) as data:
        meta = json.loads(bytes(data["meta"]))
        features = np.split(data["features"].astype(np.float32), np.cumsum(data["lengths"])[:-1])
        audio = np.split(data["audio"], np.cumsum(data["samples"])[:-1])
        durations = np.split(data["durations"], np.cumsum(data["symbols"])[:-1])
    return [
        Utterance(
            text, speaker, phonemes, duration, feature, wave.astype(np.float32) / np.float32(32767)
        )
        for (text, speaker, phonemes), duration, feature, wave in zip(
            meta, durations, features, audio, strict=True
        )
    ]


def shards(folder: Path, held_out: bool = False) -> Iterator[Path]:
    """Shard files for training, or (``held_out``) those no training step ever reads."""
    for speaker in SPEAKERS:
        whole = all(voice.held_out for voice in VOICES.values() if voice.speaker == speaker)
        for file in sorted(folder.glob(f"{speaker}-???.npz")):
            if (whole or file.stem in HELD_OUT_SHARDS) == held_out:
                yield file


def training_utterances(folder: Path) -> list[Utterance]:
    """Every utterance a training step may read."""
    return [utterance for path in shards(folder) for utterance in load_shard(path)]


def shard_count(speaker: str) -> int:
    return max(1, SPEAKERS[speaker] // SHARD_UTTERANCES)


def make_corpus(
    folder: Path,
    workers: int = 2,
    count: int = SHARD_UTTERANCES,
    sizes: dict[str, int] | None = None,
) -> dict[str, Any]:
    """Writes every missing shard and ``manifest.json``; prints progress and time left.

    ``count`` utterances a shard; ``sizes``: shards of each speaker, all of them when None. The
    held-out shard is always made.
    """
    folder.mkdir(parents=True, exist_ok=True)
    wanted = sizes or {speaker: shard_count(speaker) for speaker in SPEAKERS}
    jobs = [
        (speaker, index, str(folder), count, sizes is not None)
        for speaker, shards_of in wanted.items()
        for index in range(shards_of)
    ]
    for stem in HELD_OUT_SHARDS:
        held = (stem[:-4], int(stem[-3:]), str(folder), count, sizes is not None)
        if held not in jobs:
            jobs.append(held)
    jobs.sort(key=lambda job: (job[1] % 5 != 0, job[0] != "heart"))
    seconds: dict[str, float] = dict.fromkeys(SPEAKERS, 0.0)
    started = time.monotonic()
    with ProcessPoolExecutor(workers) as pool:
        for done, (job, length) in enumerate(
            zip(jobs, pool.map(_make_shard, jobs), strict=True), 1
        ):
            seconds[job[0]] += length
            spent = time.monotonic() - started
            left = spent / done * (len(jobs) - done)
            hours = sum(seconds.values()) / 3600
            print(f"corpus {done}/{len(jobs)} shards, {hours:.2f} h, {left:.0f} s left", flush=True)
    return _write_manifest(folder, seconds)


def _write_manifest(folder: Path, seconds: dict[str, float]) -> dict[str, Any]:
    voices: dict[str, dict[str, Any]] = {
        voice.name: {
            "speaker": voice.speaker,
            "pitch": voice.pitch,
            "formants": voice.formants,
            "tilt_db": voice.tilt_db,
            "held_out": voice.held_out,
            "hours": round(seconds[voice.speaker] / 3600, 3),
        }
        for voice in VOICES.values()
    }
    manifest = {
        "voices": voices,
        "hours_spoken": round(sum(seconds.values()) / 3600, 3),
        "hours_in_all_voices": round(sum(v["hours"] for v in voices.values()), 3),
        "shard_utterances": SHARD_UTTERANCES,
        "token_ms": TOKEN_FRAMES * world.FRAME_MS,
    }
    (folder / "manifest.json").write_text(json.dumps(manifest, indent=1))
    return manifest
