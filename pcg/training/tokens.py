"""The token corpus: every utterance in every voice as codes, with its phonemes and durations.

One ``.npz`` a shard, small enough to carry to another machine: the target and the draft train from
these files alone. Besides the named voices each shard holds a few random ones (seeded), so that
the language model learns to follow whatever voice its prompt has.
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch

from pcg.codec.bundled import TOKEN_FRAMES, BundledCodec
from pcg.training.corpus import VOICES, CorpusVoice, Utterance, load_shard

RANDOM_VOICES = 2
VOICES_AN_UTTERANCE = 3
KEPT_SILENCE = 3


@dataclass(frozen=True)
class TokenUtterance:
    """``codes`` (tokens,) and, for each phoneme symbol, the token at which it starts."""

    voice: str
    text: str
    phonemes: str
    starts: npt.NDArray[np.int64]
    codes: npt.NDArray[np.int64]


def shard_voices(speaker: str, shard: int) -> list[CorpusVoice]:
    """Named voices of ``speaker`` and ``RANDOM_VOICES`` seeded ones that belong to this shard."""
    rng = random.Random(f"{speaker}-{shard}")
    voices = [voice for voice in VOICES.values() if voice.speaker == speaker]
    for number in range(RANDOM_VOICES):
        pitch = float(np.exp(rng.uniform(np.log(0.45), np.log(1.4))))
        if speaker in ("rms", "kal16", "awb"):
            pitch = min(2.2, pitch * 1.6)
        name = f"{speaker}-{shard:03d}-{number}"
        voices.append(
            CorpusVoice(name, speaker, pitch, rng.uniform(0.82, 1.18), rng.uniform(-5, 5))
        )
    return voices


def trim_silence(utterance: Utterance) -> tuple[int, int, npt.NDArray[np.int64]]:
    """(first token, last token + 1, start of each phoneme symbol from the first token).

    At most ``KEPT_SILENCE`` tokens of silence stay at either end.
    """
    tokens = len(utterance.features) // TOKEN_FRAMES
    starts = np.concatenate([[0], np.cumsum(utterance.durations)])
    first = max(0, int(starts[1]) - KEPT_SILENCE)
    speech_end = int(starts[-2])
    if utterance.phonemes and utterance.phonemes[-1] in ".!?,;:…":
        speech_end = int(starts[-3])
    last = min(tokens, speech_end + KEPT_SILENCE)
    symbol_starts = np.clip(starts[1:-2] - first, 0, last - first)
    return first, last, symbol_starts.astype(np.int64)


def _encode_shard(job: tuple[str, str, str]) -> int:
    corpus_path, codec_folder, out_name = job
    torch.set_num_threads(1)
    source, out = Path(corpus_path), Path(out_name)
    if out.exists():
        return 0
    codec = BundledCodec.load(codec_folder)
    speaker, index = source.stem[:-4], int(source.stem[-3:])
    rows: list[TokenUtterance] = []
    utterances = load_shard(source)
    voices = shard_voices(speaker, index)
    for number, utterance in enumerate(utterances):
        first, last, starts = trim_silence(utterance)
        chosen = {voices[(number + k * 3) % len(voices)] for k in range(VOICES_AN_UTTERANCE)}
        for voice in sorted(chosen, key=lambda one: one.name):
            codes = codec.encode_features(utterance.in_voice(voice))[first:last]
            rows.append(
                TokenUtterance(voice.name, utterance.text, utterance.phonemes, starts, codes)
            )
    save_tokens(out, rows)
    return sum(len(row.codes) for row in rows)


def save_tokens(path: Path, rows: list[TokenUtterance]) -> None:
    part = path.with_suffix(".part.npz")
    np.savez_compressed(
        part,
        codes=np.concatenate([row.codes for row in rows]).astype(np.uint16),
        lengths=np.asarray([len(row.codes) for row in rows]),
        starts=np.concatenate([row.starts for row in rows]).astype(np.uint16),
        symbols=np.asarray([len(row.starts) for row in rows]),
        meta=np.frombuffer(
            json.dumps([[r.voice, r.text, r.phonemes] for r in rows]).encode(), np.uint8
        ),
    )
    part.rename(path)


def load_tokens(path: Path) -> list[TokenUtterance]:
    with np.load(path) as data:
        meta = json.loads(bytes(data["meta"]))
        codes = np.split(data["codes"].astype(np.int64), np.cumsum(data["lengths"])[:-1])
        starts = np.split(data["starts"].astype(np.int64), np.cumsum(data["symbols"])[:-1])
    return [
        TokenUtterance(voice, text, phonemes, start, code)
        for (voice, text, phonemes), start, code in zip(meta, starts, codes, strict=True)
    ]


def make_tokens(corpus: Path, codec_folder: Path, out: Path, workers: int = 2) -> int:
    """Encodes every shard of ``corpus`` that is not yet in ``out``; returns the tokens written."""
    out.mkdir(parents=True, exist_ok=True)
    sources = sorted(corpus.glob("*-???.npz"))
    jobs = [(str(path), str(codec_folder), str(out / path.name)) for path in sources]
    total, started = 0, time.monotonic()
    with ProcessPoolExecutor(workers) as pool:
        for done, count in enumerate(pool.map(_encode_shard, jobs), 1):
            total += count
            left = (time.monotonic() - started) / done * (len(jobs) - done)
            print(
                f"tokens {done}/{len(jobs)} shards, {total} tokens, {left:.0f} s left", flush=True
            )
    return total


def groups_of(paths: Iterable[Path]) -> dict[str, list[TokenUtterance]]:
    """Utterances by ``shard/voice``: two of one group are the same speaker."""
    groups: dict[str, list[TokenUtterance]] = {}
    for path in paths:
        for row in load_tokens(path):
            groups.setdefault(f"{path.stem}/{row.voice}", []).append(row)
    return groups
