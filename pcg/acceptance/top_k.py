"""Top-k acceptance: a token passes if the target ranks it among its k best. Llasa+, 2508.06262."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from pcg.acceptance.rule import Parameter, RuleSpec, Verdict
from pcg.acceptance.threshold import judge_by_threshold
from pcg.randomness import Randomness

K = Parameter("k", "k", 50, 1, 1000, 1, "How many of the target's best tokens are accepted.", "int")


class TopKRule:
    """Accept when t is in Q's top k and possible under Q; otherwise draw from Q's top k."""

    name = "top_k"

    def __init__(self, k: float = K.default) -> None:
        self.k = int(K.check(k))
        self.params = {"k": float(self.k)}

    def judge(
        self,
        draft_ids: Sequence[int],
        draft_probs: Tensor,
        target_probs: Tensor,
        source: torch.Generator | Randomness,
    ) -> Verdict:
        """See :meth:`pcg.acceptance.rule.Rule.judge`."""

        def threshold(place: int, token: int) -> tuple[float, float]:
            row = target_probs[place]
            better = int((row > row[token]).sum())
            return (1.0 if better < self.k and float(row[token]) > 0 else 0.0), 1.0

        def residual(place: int, token: int) -> tuple[Tensor, str]:
            row = target_probs[place]
            best = row.topk(min(self.k, len(row)))
            kept = torch.zeros_like(row).scatter_(0, best.indices, best.values)
            return kept / kept.sum(), "residual"

        return judge_by_threshold(draft_ids, draft_probs, target_probs, source, threshold, residual)


SPEC = RuleSpec(
    name="top_k",
    label="Top-k",
    description="Accepts any token among the target's k most probable.",
    guarantee="None.",
    source="Llasa+, arXiv 2508.06262",
    make=TopKRule,
    parameters=(K,),
)
