"""DIVERSE: exact speculative decoding against a blend of target and draft."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from pcg.acceptance.rule import BlockRule, Weighed
from pcg.errors import PcgError
from pcg.randomness import RandomSource


class Ensemble(BlockRule):
    """Exact decoding against V = w Q + (1 - w) P, so that the emitted token has law V.

    arXiv 2604.07622. The residual (V - P)_+ is w (Q - P)_+, whose normalised law is that of exact
    decoding for every w > 0; for w = 0 nothing is ever rejected. A bonus token has law Q.
    """

    name = "ensemble"

    def __init__(self, w: float = 0.7) -> None:
        if not 0.0 <= w <= 1.0:
            raise PcgError(f"w must lie in [0, 1], not {w}.")
        self.w = w

    @property
    def params(self) -> dict[str, Any]:
        return {"w": self.w}

    def weigh(self, token: int, draft: Tensor, target: Tensor, source: RandomSource) -> Weighed:
        draft_prob, target_prob = float(draft[token]), float(target[token])
        return Weighed(draft_prob, self.w * target_prob + (1.0 - self.w) * draft_prob)
