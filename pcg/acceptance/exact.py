"""Exact speculative decoding and, with nothing drafted, the target alone."""

from __future__ import annotations

from torch import Tensor

from pcg.acceptance.rule import BlockRule, Weighed
from pcg.randomness import RandomSource


class Exact(BlockRule):
    """Accept iff u P(t) < Q(t), else draw from (Q - P)_+ / Z: the emitted token has law Q.

    Leviathan et al., arXiv 2211.17192, algorithm 1; Chen et al., arXiv 2302.01318.
    """

    name = "sd"

    def weigh(self, token: int, draft: Tensor, target: Tensor, source: RandomSource) -> Weighed:
        return Weighed(weight=float(draft[token]), bound=float(target[token]))


class TargetOnly(Exact):
    """The target model alone: the decoding loop drafts nothing, every token is a bonus token."""

    name = "target"
