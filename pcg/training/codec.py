"""Trains the bundled codec on corpus features, in every voice and in random ones."""

from __future__ import annotations

import json
import random
import time
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from pcg.codec import world
from pcg.codec.bundled import TOKEN_FRAMES, CodecNetwork
from pcg.phonemes import PHONEMES, phoneme_labels
from pcg.training.corpus import VOICES, Utterance, training_utterances
from pcg.training.run import Checkpoint, cosine_rate, progress

Array = npt.NDArray[np.float32]
CROP_TOKENS = 64
BATCH = 24


class CodecTrainer(nn.Module):
    """The codec network and a phoneme classifier that reads the codes (training only).

    The classifier makes codes tell phonemes apart, which the language model needs to find its
    place in the text.
    """

    def __init__(self, shape: dict[str, int]) -> None:
        super().__init__()
        self.network = CodecNetwork(**shape)
        self.classifier = nn.Linear(shape["decoder_width"], len(PHONEMES) + 1)

    def forward(self, features: Tensor, labels: Tensor) -> tuple[Tensor, dict[str, float]]:
        values, codes = self.network.encode(features)
        decoded, hidden = self.network.decode(values)
        loss, parts = reconstruction_loss(decoded, features)
        phonemes = F.cross_entropy(
            self.classifier(hidden).flatten(0, 1), labels.flatten(), ignore_index=-100
        )
        parts["phoneme"] = float(phonemes.detach())
        parts["codes"] = float(len(torch.unique(codes)))
        return loss + 0.15 * phonemes, parts


def reconstruction_loss(decoded: Tensor, wanted: Tensor) -> tuple[Tensor, dict[str, float]]:
    """Envelope (nepers, louder frames count more), its change, F0, voicing, aperiodicity."""
    bands, target = decoded[..., : world.N_BANDS], wanted[..., : world.N_BANDS]
    loudness = target.amax(-1, keepdim=True)
    weight = 0.25 + torch.sigmoid(loudness + 8.0)
    envelope = ((bands - target).abs() * weight).mean()
    change = ((bands.diff(dim=1) - target.diff(dim=1)).abs() * weight[:, 1:]).mean()
    voiced = wanted[..., world.VOICED]
    share = voiced.mean().clamp(min=0.05)
    pitch = ((decoded[..., world.LOG_F0] - wanted[..., world.LOG_F0]).abs() * voiced).mean() / share
    noise = (decoded[..., world.APERIODICITY] - wanted[..., world.APERIODICITY]).abs()
    noise = (noise * voiced).mean() / share
    voicing = F.binary_cross_entropy_with_logits(decoded[..., world.VOICED], voiced)
    loss = envelope + 0.5 * change + 8.0 * pitch + 0.05 * noise + 0.6 * voicing
    names = ("envelope", "change", "pitch", "noise", "voicing")
    values = (envelope, change, pitch, noise, voicing)
    return loss, {name: float(v.detach()) for name, v in zip(names, values, strict=True)}


class FeatureCrops:
    """Random crops in corpus voices and in random ones, from features kept in float16."""

    def __init__(self, utterances: list[Utterance], seed: int, heart: float = 0.0) -> None:
        """``heart``: share of crops in the teacher's own voice, beside its share among voices."""
        self.rng, self.heart = random.Random(seed), heart
        self.items: dict[str, list[tuple[npt.NDArray[np.float16], npt.NDArray[np.int64]]]] = {}
        for utterance in utterances:
            tokens = len(utterance.features) // TOKEN_FRAMES
            if tokens <= CROP_TOKENS:
                continue
            labels = phoneme_labels(utterance.phonemes, utterance.durations, tokens)
            kept = utterance.features[: tokens * TOKEN_FRAMES].astype(np.float16)
            self.items.setdefault(utterance.speaker, []).append((kept, labels))
        self.voices = {
            speaker: [v for v in VOICES.values() if v.speaker == speaker and not v.held_out]
            for speaker in self.items
        }

    def one(self) -> tuple[Array, npt.NDArray[np.int64]]:
        rng = self.rng
        speaker = "heart" if rng.random() < 0.75 else rng.choice(list(self.items))
        features, labels = rng.choice(self.items[speaker])
        start = rng.randint(0, len(labels) - CROP_TOKENS)
        crop = features[start * TOKEN_FRAMES : (start + CROP_TOKENS) * TOKEN_FRAMES]
        out = crop.astype(np.float32)
        if speaker == "heart" and rng.random() < self.heart:
            pass
        elif rng.random() < 0.65:
            voice = rng.choice(self.voices[speaker])
            out = world.warp(out, voice.pitch, voice.formants, voice.tilt_db)
        else:
            pitch = float(np.exp(rng.uniform(np.log(0.42), np.log(1.5))))
            out = world.warp(out, pitch, rng.uniform(0.78, 1.22), rng.uniform(-6, 6))
        out[:, : world.N_BANDS] += rng.uniform(-1.5, 0.7)
        return out, labels[start : start + CROP_TOKENS]

    def batch(self, size: int) -> tuple[Tensor, Tensor]:
        crops = [self.one() for _ in range(size)]
        features = torch.from_numpy(np.stack([crop for crop, _ in crops]))
        return features, torch.from_numpy(np.stack([labels for _, labels in crops]))


def set_normalisation(network: CodecNetwork, crops: FeatureCrops) -> None:
    """Mean and spread of the features; one spread for all bands, so that loud bands weigh more."""
    features, _ = crops.batch(400)
    flat = features.reshape(-1, world.N_FEATURES)
    mean, spread = flat.mean(0), flat.std(0)
    spread[: world.N_BANDS] = spread[: world.N_BANDS].mean()
    mean[world.VOICED], spread[world.VOICED] = 0.0, 1.0
    network.mean.copy_(mean)
    network.spread.copy_(spread)


def train_codec(
    corpus: Path, out: Path, work: Path, minutes: float, seed: int = 0
) -> dict[str, Any]:
    """Trains for ``minutes`` of wall-clock time, resuming from ``work``; writes ``out``.

    The result's ``codec.json`` holds the network's shape, the steps and the last losses.
    """
    torch.manual_seed(seed)
    shape = {"encoder_width": 256, "decoder_width": 256, "encoder_blocks": 3, "decoder_blocks": 6}
    trainer = CodecTrainer(shape)
    crops = FeatureCrops(training_utterances(corpus), seed)
    set_normalisation(trainer.network, crops)
    optimiser = torch.optim.AdamW(trainer.parameters(), 2e-3, betas=(0.9, 0.95), weight_decay=0.01)
    checkpoint = Checkpoint(work / "codec.pt", trainer, optimiser)
    step, spent = checkpoint.resume()
    means: dict[str, float] = {}
    started = time.monotonic() - spent
    while (elapsed := (time.monotonic() - started) / 60) < minutes:
        for group in optimiser.param_groups:
            group["lr"] = cosine_rate(2e-3, step, 200, elapsed / minutes)
        loss, parts = trainer(*crops.batch(BATCH))
        optimiser.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(trainer.parameters(), 1.0)
        optimiser.step()
        step += 1
        means = {k: 0.98 * means.get(k, v) + 0.02 * v for k, v in parts.items()}
        if step % 100 == 0:
            progress("codec", step, elapsed, minutes, means)
        if step % 500 == 0:
            checkpoint.save(step, time.monotonic() - started)
            save_codec(trainer.network, shape, out, {"steps": step, "losses": means})
    checkpoint.save(step, time.monotonic() - started)
    report = {"steps": step, "minutes": minutes, "seed": seed, "losses": means}
    save_codec(trainer.network, shape, out, report)
    return report


def save_codec(
    network: CodecNetwork, shape: dict[str, int], out: Path, report: dict[str, Any]
) -> None:
    """Writes ``codec.safetensors`` (float16, but the normalisation) and ``codec.json``."""
    from safetensors.torch import save_file

    out.mkdir(parents=True, exist_ok=True)
    weights = {
        key: value.clone() if key in ("mean", "spread") else value.half()
        for key, value in network.state_dict().items()
    }
    save_file(weights, out / "codec.safetensors")
    (out / "codec.json").write_text(json.dumps({"network": shape, "training": report}, indent=1))
