"""Principled coarse-grained acceptance (PCG): speculative decoding on groups of similar tokens."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from pcg.acceptance.rule import BlockRule, Weighed
from pcg.coarse import Residual, coarse_probs, draw_labels, group_residual
from pcg.groups import AcousticGroups
from pcg.randomness import RandomSource


class Grouped(BlockRule):
    """Draw k uniformly from S(t), accept iff u P_c(k) < Q_c(k), keep the drafted token itself.

    arXiv 2511.13732. On rejection the group residual (Q_c - P_c)_+ / Z is drawn by thinning. The
    label of the emitted token has law Q_c, exactly; the token itself need not have law Q.
    """

    name = "pcg"

    def __init__(self, groups: AcousticGroups) -> None:
        self.groups = groups
        self.vocab_size = groups.vocab_size

    @property
    def params(self) -> dict[str, Any]:
        return {"theta": self.groups.theta}

    def weigh(self, token: int, draft: Tensor, target: Tensor, source: RandomSource) -> Weighed:
        label = draw_labels([token], self.groups, source)[0]
        return Weighed(
            weight=float(coarse_probs(draft, self.groups, [label])),
            bound=float(coarse_probs(target, self.groups, [label])),
            group=label,
            group_size=self.groups.size(label),
        )

    def replace(
        self, token: int, draft: Tensor, target: Tensor, weighed: Weighed, source: RandomSource
    ) -> Residual:
        return group_residual(draft, target, self.groups, source)
