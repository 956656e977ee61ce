"""What every training step shares: checkpoints to resume from, the rate, the progress line."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import torch
from torch import nn


class Checkpoint:
    """Weights, optimiser, step and seconds spent in one file outside the repository."""

    def __init__(self, path: Path, model: nn.Module, optimiser: torch.optim.Optimizer) -> None:
        self.path, self.model, self.optimiser = path, model, optimiser

    def resume(self) -> tuple[int, float]:
        """(step, seconds spent); (0, 0.0) when there is nothing to resume from."""
        if not self.path.exists():
            return 0, 0.0
        state = torch.load(self.path, weights_only=True)
        self.model.load_state_dict(state["model"])
        self.optimiser.load_state_dict(state["optimiser"])
        return int(state["step"]), float(state["seconds"])

    def save(self, step: int, seconds: float) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        state: dict[str, Any] = {
            "model": self.model.state_dict(),
            "optimiser": self.optimiser.state_dict(),
            "step": step,
            "seconds": seconds,
        }
        part = self.path.with_suffix(".part")
        torch.save(state, part)
        part.rename(self.path)


def cosine_rate(peak: float, step: int, warmup: int, done: float) -> float:
    """Linear warm-up over ``warmup`` steps, then a cosine of the share ``done`` in 0..1 to 2 %."""
    fall = 0.5 * (1 + math.cos(math.pi * min(1.0, done)))
    return peak * min(1.0, (step + 1) / warmup) * (0.02 + 0.98 * fall)


def progress(
    name: str, step: int, minutes: float, budget: float, figures: dict[str, float]
) -> None:
    """One line: step, time spent and left, figures."""
    shown = ", ".join(f"{key} {value:.4g}" for key, value in figures.items())
    left = max(0.0, budget - minutes)
    print(f"{name} step {step}, {minutes:.1f} min, {left:.1f} min left: {shown}", flush=True)


def adamw(model: nn.Module, rate: float) -> torch.optim.AdamW:
    """AdamW that decays matrices only."""
    matrices = [p for p in model.parameters() if p.dim() > 1]
    vectors = [p for p in model.parameters() if p.dim() <= 1]
    return torch.optim.AdamW(
        [{"params": matrices, "weight_decay": 0.05}, {"params": vectors, "weight_decay": 0.0}],
        lr=rate,
        betas=(0.9, 0.95),
    )
