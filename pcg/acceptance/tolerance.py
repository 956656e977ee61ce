"""VADUSA's sampled tolerance: a draft is kept if the target draws it within a few tries."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from pcg.acceptance.rule import BlockRule, Weighed
from pcg.coarse import Residual
from pcg.errors import PcgError
from pcg.randomness import RandomSource


class Tolerance(BlockRule):
    """Accept if t is among tau draws from Q, so with chance 1 - (1 - Q(t))^tau, else draw from Q.

    arXiv 2410.21951, in our best reading of it. No guarantee.
    """

    name = "tolerance"

    def __init__(self, tau: int = 3) -> None:
        if tau != int(tau) or tau < 1:
            raise PcgError(f"tau must be a whole number, 1 or more, not {tau}.")
        self.tau = int(tau)

    @property
    def params(self) -> dict[str, Any]:
        return {"tau": self.tau}

    def weigh(self, token: int, draft: Tensor, target: Tensor, source: RandomSource) -> Weighed:
        missed = max(0.0, 1.0 - float(target[token])) ** self.tau
        return Weighed(weight=1.0, bound=1.0 - missed)

    def replace(
        self, token: int, draft: Tensor, target: Tensor, weighed: Weighed, source: RandomSource
    ) -> Residual:
        return Residual(source.categorical(target)[0], None, 0)
