"""Tolerance: a token passes if it is among tau draws of the target. VADUSA, arXiv 2410.21951."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from pcg.acceptance.rule import Parameter, RuleSpec, Verdict
from pcg.acceptance.threshold import judge_by_threshold
from pcg.randomness import Randomness

TAU = Parameter(
    "tau", "tolerance tau", 3, 1, 50, 1, "How many draws of the target a token may match.", "int"
)


class ToleranceRule:
    """Accept with probability ``1 - (1 - Q(t))^tau``; otherwise draw from Q."""

    name = "tolerance"

    def __init__(self, tau: float = TAU.default) -> None:
        self.tau = TAU.check(tau)
        self.params = {"tau": self.tau}

    def judge(
        self,
        draft_ids: Sequence[int],
        draft_probs: Tensor,
        target_probs: Tensor,
        source: torch.Generator | Randomness,
    ) -> Verdict:
        """See :meth:`pcg.acceptance.rule.Rule.judge`."""

        def threshold(place: int, token: int) -> tuple[float, float]:
            return 1.0 - (1.0 - float(target_probs[place, token])) ** self.tau, 1.0

        def residual(place: int, token: int) -> tuple[Tensor, str]:
            return target_probs[place], "residual"

        return judge_by_threshold(draft_ids, draft_probs, target_probs, source, threshold, residual)


SPEC = RuleSpec(
    name="tolerance",
    label="Tolerance",
    description="Accepts a token that would be among tau draws of the target.",
    guarantee="None.",
    source="VADUSA, arXiv 2410.21951 (best reading of the text)",
    make=ToleranceRule,
    parameters=(TAU,),
)
