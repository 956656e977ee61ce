"""The random choices of an acceptance rule, behind one small seam.

Rules ask for choices, not for numbers: tests put an enumerator behind the same three calls and
visit every branch of the production code.
"""

from __future__ import annotations

import torch
from torch import Tensor

from pcg.sampling import draw


class Randomness:
    """Choices from one ``torch.Generator``. Uniforms are float64 in [0, 1)."""

    def __init__(self, generator: torch.Generator) -> None:
        self.generator = generator

    def uniforms(self, count: int) -> list[float]:
        rows = torch.rand(count, generator=self.generator, dtype=torch.float64)
        return [float(value) for value in rows.tolist()]

    def passes(self, left: float, right: float) -> tuple[float, bool]:
        """(u, whether u * right < left): true with probability min(1, left / right)."""
        u = self.uniforms(1)[0]
        return u, u * right < left

    def index(self, count: int) -> int:
        """Uniform in ``0..count-1``; a single choice costs no randomness."""
        return 0 if count == 1 else min(int(self.uniforms(1)[0] * count), count - 1)

    def categorical(self, weights: Tensor) -> int:
        """An id of ``weights`` ``(V,)``, non-negative, not all zero, drawn in proportion."""
        return int(draw(weights / weights.sum(), self.generator))

    def categoricals(self, probs: Tensor, count: int) -> Tensor:
        """``count`` independent ids of one row ``(V,)``: ``(count,)`` int64, none impossible."""
        edges = probs.double().cumsum(0)
        points = torch.tensor(self.uniforms(count), dtype=torch.float64, device=probs.device)
        ids = torch.searchsorted(edges, points * edges[-1], right=True).clamp(max=len(probs) - 1)
        impossible = probs[ids] <= 0
        if bool(impossible.any()):
            ids = torch.where(impossible, probs.argmax(), ids)
        return ids


def as_randomness(source: torch.Generator | Randomness) -> Randomness:
    return Randomness(source) if isinstance(source, torch.Generator) else source
