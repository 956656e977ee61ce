"""Grouped speculative decoding (GSD): a cluster in the target's ranking is accepted as one."""

from __future__ import annotations

import torch
from torch import Tensor

from pcg.acceptance.neighbours import Neighbours
from pcg.acceptance.rule import BlockRule, Weighed
from pcg.randomness import RandomSource

HALF_WINDOW = 7  # ids looked at on either side of t in the target's ranking
PROB_GAP = 0.15  # largest difference of target probability from t's
DISTANCE = 0.5  # largest embedding distance from t


class RankGrouped(BlockRule):
    """Accept iff u P(C) < Q(C), C = t and the ids near it both in Q's ranking and in embedding.

    arXiv 2508.07747, constants of its public code; distances here are between unit-length rows. On
    rejection it draws from (Q - P)_+ as exact decoding does. No guarantee.
    """

    name = "gsd"

    def __init__(self, neighbours: Neighbours) -> None:
        self.neighbours = neighbours

    def cluster(self, token: int, target: Tensor) -> Tensor:
        """(n,) ids, t among them."""
        own = target[token]
        above = torch.where(target > own, target, torch.inf)
        below = torch.where(target <= own, target, -torch.inf)
        below[token] = -torch.inf
        width = min(HALF_WINDOW, len(target))
        upper = above.topk(width, largest=False)
        lower = below.topk(width)
        ids = torch.cat([upper.indices, lower.indices])
        probs = torch.cat([upper.values, lower.values])
        near = self.neighbours.distances(token, ids.cpu()).to(target.device)
        kept = ids[((probs - own).abs() < PROB_GAP) & (near < DISTANCE)]
        return torch.cat([kept, torch.tensor([token], device=target.device)])

    def weigh(self, token: int, draft: Tensor, target: Tensor, source: RandomSource) -> Weighed:
        ids = self.cluster(token, target)
        return Weighed(float(draft[ids].double().sum()), float(target[ids].double().sum()))
