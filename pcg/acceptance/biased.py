"""Speech speculative decoding (SSD): exact speculative decoding with a bias towards acceptance."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from pcg.acceptance.rule import BlockRule, Weighed
from pcg.errors import PcgError
from pcg.randomness import RandomSource


class Biased(BlockRule):
    """Accept iff u < min(1, Q(t) / P(t)) + beta, else draw from (Q - P)_+ / Z.

    arXiv 2505.15380 (beta 0.4, lookahead 3). No guarantee: the law of the emitted token is off the
    target's by sum over Q < P of min(beta P, P - Q) in total variation.
    """

    name = "ssd"

    def __init__(self, beta: float = 0.4) -> None:
        if not 0.0 <= beta <= 1.0:
            raise PcgError(f"beta must lie in [0, 1], not {beta}.")
        self.beta = beta

    @property
    def params(self) -> dict[str, Any]:
        return {"beta": self.beta}

    def weigh(self, token: int, draft: Tensor, target: Tensor, source: RandomSource) -> Weighed:
        draft_prob, target_prob = float(draft[token]), float(target[token])
        return Weighed(draft_prob, min(draft_prob, target_prob) + self.beta * draft_prob)
