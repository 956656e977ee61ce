"""Sharpens the codec's decoder with an adversary; the encoder, so every code, stays as it is.

A regression decoder blurs the fine structure of the envelope, which is heard as a buzz. A small
convolutional discriminator over patches of the envelope (least squares GAN, arXiv 1611.04076, with
feature matching) puts it back. Language models trained on the codes are not affected.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from pcg.codec import world
from pcg.codec.bundled import BundledCodec, CodecNetwork
from pcg.training.codec import FeatureCrops, reconstruction_loss, save_codec
from pcg.training.corpus import training_utterances
from pcg.training.run import Checkpoint, cosine_rate, progress

BATCH = 10


class EnvelopeDiscriminator(nn.Module):
    """Envelopes ``(B, T, N_BANDS)`` -> (scores, hidden maps)."""

    def __init__(self, width: int = 24) -> None:
        super().__init__()
        sizes = [(1, width, 2), (width, 2 * width, 2), (2 * width, 2 * width, 2)]
        self.layers = nn.ModuleList(
            nn.utils.parametrizations.weight_norm(
                nn.Conv2d(a, b, (5, 5), stride=(stride, 2), padding=2)
            )
            for a, b, stride in sizes
        )
        self.fine = nn.utils.parametrizations.weight_norm(
            nn.Conv2d(1, width, (3, 7), stride=(2, 1), padding=(1, 3))
        )
        self.score = nn.Conv2d(2 * width, 1, 3, padding=1)
        self.score_fine = nn.Conv2d(width, 1, 3, padding=1)

    def forward(self, bands: Tensor) -> tuple[list[Tensor], list[Tensor]]:
        hidden, maps = bands[:, None], []
        fine = F.leaky_relu(self.fine(hidden), 0.1)
        maps.append(fine)
        for layer in self.layers:
            hidden = F.leaky_relu(layer(hidden), 0.1)
            maps.append(hidden)
        return [self.score(hidden), self.score_fine(fine)], maps


def _toward(scores: list[Tensor], goal: float) -> Tensor:
    return torch.stack([(score - goal).square().mean() for score in scores]).mean()


def train_decoder(
    corpus: Path, out: Path, work: Path, minutes: float, seed: int = 0, rate: float = 6e-4
) -> dict[str, Any]:
    """Trains the decoder of the codec in ``out`` for ``minutes``, resuming from ``work``."""
    torch.manual_seed(seed)
    network = BundledCodec.load(out).network.train()
    shape = _shape(network)
    crops = FeatureCrops(training_utterances(corpus), seed, heart=0.45)
    critic = EnvelopeDiscriminator()
    decoder = [
        p
        for name, p in network.named_parameters()
        if not name.startswith(("into", "encoder", "to_digits"))
    ]
    ours = torch.optim.AdamW(decoder, rate, betas=(0.8, 0.98), weight_decay=0.01)
    theirs = torch.optim.AdamW(critic.parameters(), 4e-4, betas=(0.8, 0.98))
    checkpoint = Checkpoint(work / "decoder.pt", nn.ModuleList([network, critic]), ours)
    step, spent = checkpoint.resume()
    started, means = time.monotonic() - spent, dict[str, float]()
    while (elapsed := (time.monotonic() - started) / 60) < minutes:
        for group in ours.param_groups:
            group["lr"] = cosine_rate(rate, step, 50, elapsed / minutes)
        features, _ = crops.batch(BATCH)
        parts = _step(network, critic, ours, theirs, features, adversary=step >= 100)
        step += 1
        means = {k: 0.98 * means.get(k, v) + 0.02 * v for k, v in parts.items()}
        if step % 50 == 0:
            progress("decoder", step, elapsed, minutes, means)
        if step % 200 == 0:
            checkpoint.save(step, time.monotonic() - started)
            save_codec(network, shape, out, {"decoder_steps": step, "losses": means})
    checkpoint.save(step, time.monotonic() - started)
    report = {"decoder_steps": step, "minutes": minutes, "losses": means}
    save_codec(network, shape, out, report)
    return report


def _shape(network: CodecNetwork) -> dict[str, int]:
    return {
        "encoder_width": network.into.out_features,
        "decoder_width": network.out.in_features,
        "encoder_blocks": len(network.encoder),
        "decoder_blocks": len(network.first) + len(network.second),
    }


def _step(
    network: CodecNetwork,
    critic: EnvelopeDiscriminator,
    ours: torch.optim.Optimizer,
    theirs: torch.optim.Optimizer,
    features: Tensor,
    adversary: bool,
) -> dict[str, float]:
    with torch.no_grad():
        values, _ = network.encode(features)
    decoded, _ = network.decode(values)
    loss, parts = reconstruction_loss(decoded, features)
    if adversary:
        real, made = (_bands(network, x) for x in (features, decoded))
        real_scores, real_maps = critic(real)
        made_scores, _ = critic(made.detach())
        wrong = _toward(real_scores, 1.0) + _toward(made_scores, 0.0)
        theirs.zero_grad()
        wrong.backward()
        theirs.step()
        scores, maps = critic(made)
        matching = torch.stack(
            [(a.detach() - b).abs().mean() for a, b in zip(real_maps, maps, strict=True)]
        ).mean()
        fooled = _toward(scores, 1.0)
        loss = 0.35 * loss + fooled + 2.0 * matching
        parts |= {"critic": float(wrong), "fooled": float(fooled), "matching": float(matching)}
    ours.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_([p for g in ours.param_groups for p in g["params"]], 2.0)
    ours.step()
    return parts


def _bands(network: CodecNetwork, features: Tensor) -> Tensor:
    bands = slice(0, world.N_BANDS)
    return (features[..., bands] - network.mean[bands]) / network.spread[bands]
