"""The random choices of an acceptance rule, behind one small seam.

Rules ask for choices, not for numbers: tests put an enumerator behind the same calls and visit
every branch of the production code.
"""

from __future__ import annotations

import torch
from torch import Tensor

from pcg.sampling import pick, pick_from_row

READY = 64


class Randomness:
    """Choices from one ``torch.Generator``. Uniforms are float64 in [0, 1).

    Uniforms are made ``READY`` at a time, so a choice costs a list access; the generator is
    therefore ahead of the choices, and belongs to this object while it lives.
    """

    def __init__(self, generator: torch.Generator) -> None:
        self.generator = generator
        self._ready: list[float] = []

    def uniforms(self, count: int) -> list[float]:
        """``count`` independent uniforms."""
        while len(self._ready) < count:
            self._ready += torch.rand(
                READY, generator=self.generator, device=self.generator.device, dtype=torch.float64
            ).tolist()
        taken, self._ready = self._ready[:count], self._ready[count:]
        return taken

    def passes(self, left: float, right: float) -> tuple[float, bool]:
        """(u, whether u * right < left): true with probability min(1, left / right)."""
        u = self.uniforms(1)[0]
        return u, u * right < left

    def index(self, count: int) -> int:
        """Uniform in ``0..count-1``; a single choice costs no randomness."""
        return 0 if count == 1 else min(int(self.uniforms(1)[0] * count), count - 1)

    def categorical(self, weights: Tensor) -> int:
        """An id of ``weights`` ``(V,)``, non-negative, not all zero, drawn in proportion."""
        return self.categoricals(weights, 1)[0]

    def categoricals(self, weights: Tensor, count: int) -> list[int]:
        """``count`` independent ids of one row ``(V,)``, none of weight zero."""
        points = self.uniforms(count)
        if weights.device.type == "cpu":
            return pick_from_row(weights, points).tolist()
        there = torch.tensor(points, dtype=torch.float64, device=weights.device)
        ids: list[int] = pick(weights, there).tolist()
        return ids


def as_randomness(source: torch.Generator | Randomness) -> Randomness:
    """``source`` itself, or choices from a generator."""
    return Randomness(source) if isinstance(source, torch.Generator) else source
