"""Trains the duration predictor on the teacher's exact durations."""

from __future__ import annotations

import random
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from pcg.durations import FILE, DurationNetwork, classes_of
from pcg.training.run import cosine_rate, progress
from pcg.training.sequences import split_shards
from pcg.training.tokens import KEPT_SILENCE, load_tokens

Item = tuple[np.ndarray, np.ndarray]


def duration_items(paths: list[Path]) -> list[Item]:
    """(classes, tokens of each symbol) of every distinct teacher sentence, silence left out."""
    items: dict[str, Item] = {}
    for path in paths:
        if not path.name.startswith("heart"):
            continue
        for row in load_tokens(path):
            ends = np.append(row.starts[1:], len(row.codes) - KEPT_SILENCE)
            tokens = np.maximum(ends - row.starts, 0)
            if len(tokens) == len(row.phonemes):
                items[row.text] = (classes_of(row.phonemes), tokens.astype(np.float32))
    return list(items.values())


def train_durations(
    tokens: Path, out: Path, minutes: float = 3.0, seed: int = 0, batch: int = 32
) -> dict[str, Any]:
    """Trains for ``minutes``, writes the weights; returns held-out errors in tokens."""
    from safetensors.torch import save_file

    torch.manual_seed(seed)
    rng = random.Random(seed)
    training, held_out = (duration_items(paths) for paths in split_shards(tokens))
    network = DurationNetwork()
    optimiser = torch.optim.AdamW(network.parameters(), 2e-3, weight_decay=0.01)
    started, step = time.monotonic(), 0
    while (elapsed := (time.monotonic() - started) / 60) < minutes:
        for group in optimiser.param_groups:
            group["lr"] = cosine_rate(2e-3, step, 100, elapsed / minutes)
        loss = _loss(network, rng.sample(training, min(batch, len(training))))
        optimiser.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        optimiser.step()
        step += 1
        if step % 200 == 0:
            progress("durations", step, elapsed, minutes, {"loss": float(loss)})
    out.mkdir(parents=True, exist_ok=True)
    save_file({k: v.half() for k, v in network.state_dict().items()}, out / FILE)
    return {"steps": step, **_errors(network.eval(), held_out)}


def _loss(network: DurationNetwork, items: list[Item]) -> torch.Tensor:
    longest = max(len(classes) for classes, _ in items)
    classes = torch.zeros(len(items), longest, dtype=torch.long)
    wanted, mask = torch.zeros(len(items), longest), torch.zeros(len(items), longest)
    for row, (one, tokens) in enumerate(items):
        classes[row, : len(one)] = torch.from_numpy(one)
        wanted[row, : len(one)] = torch.from_numpy(tokens)
        mask[row, : len(one)] = 1
    logs = network(classes)
    each = F.mse_loss(logs, wanted.log1p(), reduction="none") * mask
    total = (logs.expm1() * mask).sum(1) / (wanted.sum(1) + 1)
    return each.sum() / mask.sum() + 0.1 * (total - 1).abs().mean()


@torch.no_grad()
def _errors(network: DurationNetwork, items: list[Item]) -> dict[str, float]:
    each, whole = [], []
    for classes, tokens in items:
        predicted = network(torch.from_numpy(classes)[None])[0].expm1().clamp(min=0).numpy()
        each.append(np.abs(predicted - tokens).mean())
        whole.append(abs(predicted.sum() / max(tokens.sum(), 1) - 1))
    return {"symbol_error_tokens": float(np.mean(each)), "total_error": float(np.mean(whole))}
