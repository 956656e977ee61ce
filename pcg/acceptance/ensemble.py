"""Verification against a mixture of target and draft. DIVERSE, arXiv 2604.07622."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from pcg.acceptance.rule import Parameter, RuleSpec, Verdict, check_rows, positive_part
from pcg.acceptance.threshold import judge_by_threshold
from pcg.randomness import Randomness

WEIGHT = Parameter(
    "w",
    "target weight w",
    0.7,
    0.0,
    1.0,
    0.05,
    "Weight of the target in the mixture that is matched: 1 is SD, 0 accepts everything.",
)


class EnsembleRule:
    """SD against ``M = w Q + (1 - w) P``; the bonus token comes from the target."""

    name = "ensemble"

    def __init__(self, w: float = WEIGHT.default) -> None:
        self.w = WEIGHT.check(w)
        self.params = {"w": self.w}

    def judge(
        self,
        draft_ids: Sequence[int],
        draft_probs: Tensor,
        target_probs: Tensor,
        source: torch.Generator | Randomness,
    ) -> Verdict:
        """See :meth:`pcg.acceptance.rule.Rule.judge`."""
        check_rows(draft_ids, draft_probs, target_probs)

        def threshold(place: int, token: int) -> tuple[float, float]:
            draft, target = float(draft_probs[place, token]), float(target_probs[place, token])
            return self.w * target + (1 - self.w) * draft, draft

        def residual(place: int, token: int) -> tuple[Tensor, str]:
            return positive_part(target_probs[place], draft_probs[place])

        return judge_by_threshold(draft_ids, draft_probs, target_probs, source, threshold, residual)


SPEC = RuleSpec(
    name="ensemble",
    label="Ensemble",
    description="Matches a mixture of target and draft instead of the target.",
    guarantee="Judged tokens follow w Q + (1 - w) P exactly, step by step; the bonus token Q.",
    source="DIVERSE, arXiv 2604.07622",
    make=EnsembleRule,
    parameters=(WEIGHT,),
)
