"""Sequences for draft training: the target's own samples, or a corpus of recordings.

``own_samples`` needs nothing but texts and voice prompts; ``recorded`` reads a folder in LibriTTS
or LibriHeavy layout (each recording beside a transcript) and encodes it with the model's codec.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from pcg.acceptance import make_rule
from pcg.decoding import Prompt, decode
from pcg.errors import PcgError
from pcg.layout import SpeechLayout
from pcg.sampling import Sampling
from pcg.training.draft import Batch

if TYPE_CHECKING:
    from pcg.voice_model import VoiceModel
    from pcg.voices import VoicePrompt

AUDIO = (".wav", ".flac", ".opus", ".mp3")
TRANSCRIPTS = (".normalized.txt", ".txt", ".trans.txt")


def to_batch(prompt: Prompt, spoken: Sequence[int], layout: SpeechLayout) -> Batch:
    """One sequence as (ids, labels, positions, mask) with a batch of 1; ``spoken`` are compact."""
    others: list[int] = []
    ids = [*prompt.ids, *layout.model_ids(list(spoken), others)]
    positions = list(prompt.positions or range(len(prompt.ids)))
    positions += [positions[-1] + 1 + i for i in range(len(spoken))]
    labels = [-100] * len(prompt.ids) + ids[len(prompt.ids) :]
    rows = [torch.tensor([part]) for part in (ids, labels, positions, [1] * len(ids))]
    return rows[0], rows[1], rows[2], rows[3]


def own_samples(
    model: VoiceModel,
    texts: Sequence[str],
    voices: Sequence[VoicePrompt | None],
    seed: int = 0,
    temperature: float = 0.8,
    minutes: float | None = None,
) -> list[Batch]:
    """What the target says of each text, in voices taken in turn; stops after ``minutes``."""
    layout = model.target.layout
    rule, batches, started = make_rule("target"), list[Batch](), time.monotonic()
    for number, text in enumerate(texts):
        if minutes is not None and (time.monotonic() - started) / 60 > minutes:
            break
        voice = voices[number % len(voices)]
        prompt = model.prompts.build(text, voice, model.voice_codes(voice))
        tokens: list[int] = []
        for turn in decode(
            model.target,
            None,
            prompt,
            rule,
            sampling=Sampling(temperature),
            seed=seed + number,
            max_tokens=model.prompts.estimate_tokens(text, voice),
        ):
            tokens += turn.emitted
        batches.append(to_batch(prompt, tokens, layout))
        if (number + 1) % 20 == 0:
            print(
                f"samples {number + 1}/{len(texts)}, {time.monotonic() - started:.0f} s", flush=True
            )
    return batches


def recorded(model: VoiceModel, folder: Path, limit: int | None = None) -> list[Batch]:
    """Sequences of a folder of recordings with transcripts, encoded by the model's codec.

    Raises:
        PcgError: when the folder holds no recording with a transcript.
    """
    from pcg.voices import read_voice

    batches: list[Batch] = []
    for path, transcript in recordings(folder)[:limit]:
        voice = read_voice(path, "", max_seconds=30.0)
        codes = [int(code) for code in model.codec.encode(voice.audio)]
        prompt = model.prompts.build(transcript, None, ())
        if len(prompt.ids) + len(codes) < model.target.max_positions:
            batches.append(to_batch(prompt, [*codes, model.target.end_id], model.target.layout))
    if not batches:
        raise PcgError(f"No recording with a transcript beside it was found in {folder.name}.")
    return batches


def recordings(folder: Path) -> list[tuple[Path, str]]:
    """(recording, transcript) pairs below ``folder``, sorted."""
    found = []
    for path in sorted(p for p in folder.rglob("*") if p.suffix.lower() in AUDIO):
        for ending in TRANSCRIPTS:
            text = path.with_name(path.name[: -len(path.suffix)] + ending)
            if text.is_file():
                found.append((path, " ".join(text.read_text(encoding="utf-8").split())))
                break
    return found


def endless(batches: Sequence[Batch], seed: int = 0) -> Iterator[Batch]:
    """The batches in a new random order each time through."""
    rng, order = random.Random(seed), list(batches)
    while True:
        rng.shuffle(order)
        yield from order


def alternately(one: Iterator[Batch], other: Iterator[Batch]) -> Iterator[Batch]:
    """A batch of each in turn."""
    while True:
        yield next(one)
        yield next(other)
