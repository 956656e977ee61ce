"""Llasa+'s check: a draft is kept if the target ranks it among its k most likely."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from pcg.acceptance.rule import BlockRule, Weighed
from pcg.coarse import Residual
from pcg.errors import PcgError
from pcg.randomness import RandomSource


class TopK(BlockRule):
    """Accept iff t is among the k most likely ids of Q, else draw from those k.

    arXiv 2508.06262 (k 50). No guarantee. An id the target gives no mass is never accepted; ids
    as likely as the k-th all count.
    """

    name = "top_k"

    def __init__(self, k: int = 50) -> None:
        if k != int(k) or k < 1:
            raise PcgError(f"k must be a whole number, 1 or more, not {k}.")
        self.k = int(k)

    @property
    def params(self) -> dict[str, Any]:
        return {"k": self.k}

    def weigh(self, token: int, draft: Tensor, target: Tensor, source: RandomSource) -> Weighed:
        prob = target[token]
        kept = bool(prob > 0) and int((target > prob).sum()) < self.k
        return Weighed(weight=1.0, bound=1.0 if kept else 0.0)

    def replace(
        self, token: int, draft: Tensor, target: Tensor, weighed: Weighed, source: RandomSource
    ) -> Residual:
        probs, ids = target.topk(min(self.k, len(target)))
        return Residual(int(ids[source.categorical(probs)[0]]), None, 0)
