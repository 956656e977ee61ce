"""Speech speculative decoding (SSD): accepts more by a constant. arXiv 2505.15380."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from pcg.acceptance.rule import Parameter, RuleSpec, Verdict
from pcg.acceptance.threshold import judge_by_threshold
from pcg.randomness import Randomness

BETA = Parameter(
    "beta",
    "beta",
    0.4,
    0.0,
    1.0,
    0.05,
    "Added to the acceptance probability of every token; 0 is SD, 1 accepts everything.",
)


class BiasedRule:
    """Accept when ``u < min(1, Q/P) + beta``; otherwise ``norm (Q - P)+``; bonus from Q."""

    name = "ssd"

    def __init__(self, beta: float = BETA.default) -> None:
        self.beta = BETA.check(beta)
        self.params = {"beta": self.beta}

    def judge(
        self,
        draft_ids: Sequence[int],
        draft_probs: Tensor,
        target_probs: Tensor,
        source: torch.Generator | Randomness,
    ) -> Verdict:
        """See :meth:`pcg.acceptance.rule.Rule.judge`."""

        def threshold(place: int, token: int) -> tuple[float, float]:
            draft, target = float(draft_probs[place, token]), float(target_probs[place, token])
            return min(draft, target) + self.beta * draft, draft

        return judge_by_threshold(draft_ids, draft_probs, target_probs, source, threshold)


SPEC = RuleSpec(
    name="ssd",
    label="SSD (biased)",
    description="Accepts with probability min(1, Q/P) + beta, whatever the token sounds like.",
    guarantee="None; per step the token law moves by at most sum over Q<P of min(beta P, P - Q).",
    source="arXiv 2505.15380",
    make=BiasedRule,
    parameters=(BETA,),
)
