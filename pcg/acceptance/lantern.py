"""LANTERN and LANTERN++: a draft token may borrow the target's mass of its latent neighbours."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from pcg.acceptance.neighbours import Neighbours
from pcg.acceptance.rule import BlockRule, Weighed
from pcg.coarse import Residual, token_residual
from pcg.errors import PcgError
from pcg.randomness import RandomSource


class Lantern(BlockRule):
    """Accept iff u P(t) < Q(t) + c, where c is the target mass of the j nearest neighbours of t.

    j <= k is the largest with c <= delta (arXiv 2410.03355). On rejection the draft's mass on the
    neighbours used is zeroed and the token drawn from (Q - P)_+. At most delta of mass moves.
    """

    name = "lantern"

    def __init__(self, neighbours: Neighbours, delta: float = 0.1) -> None:
        if not 0.0 <= delta <= 1.0:
            raise PcgError(f"delta must lie in [0, 1], not {delta}.")
        self.neighbours = neighbours
        self.delta = delta

    @property
    def params(self) -> dict[str, Any]:
        return {"k": self.neighbours.count, "delta": self.delta}

    def budget(self, target_prob: float) -> float:
        """How much target mass may be borrowed."""
        return self.delta

    def borrowed(self, token: int, target: Tensor) -> tuple[Tensor, float]:
        """The neighbours used, nearest first, and their target mass."""
        near = self.neighbours.of(token).to(target.device)
        sums = target[near].double().cumsum(0)
        budget = self.budget(float(target[token]))
        used = int(torch.searchsorted(sums, budget, right=True)) if len(near) else 0
        return near[:used], float(sums[used - 1]) if used else 0.0

    def weigh(self, token: int, draft: Tensor, target: Tensor, source: RandomSource) -> Weighed:
        _, mass = self.borrowed(token, target)
        return Weighed(weight=float(draft[token]), bound=float(target[token]) + mass)

    def replace(
        self, token: int, draft: Tensor, target: Tensor, weighed: Weighed, source: RandomSource
    ) -> Residual:
        used, _ = self.borrowed(token, target)
        return token_residual(draft.index_fill(0, used, 0.0), target, source)


class LanternPlus(Lantern):
    """LANTERN++: the mass borrowed is at most (lam - 1) Q(t), so that a sure token borrows more.

    arXiv 2502.06352.
    """

    name = "lantern++"

    def __init__(self, neighbours: Neighbours, lam: float = 2.0) -> None:
        if not lam >= 1.0:
            raise PcgError(f"lam must be 1 or more, not {lam}.")
        super().__init__(neighbours)
        self.lam = lam

    @property
    def params(self) -> dict[str, Any]:
        return {"k": self.neighbours.count, "lam": self.lam}

    def budget(self, target_prob: float) -> float:
        return (self.lam - 1.0) * target_prob
