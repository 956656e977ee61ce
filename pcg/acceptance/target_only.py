"""Target only: the same loop with nothing drafted."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from pcg.acceptance.rule import RuleSpec, Verdict, check_rows, draw_from
from pcg.errors import PcgError
from pcg.randomness import Randomness, as_randomness


class TargetRule:
    """Draws every token from the target; it has nothing to judge."""

    name = "target"

    def __init__(self) -> None:
        self.params: dict[str, float] = {}

    def judge(
        self,
        draft_ids: Sequence[int],
        draft_probs: Tensor,
        target_probs: Tensor,
        source: torch.Generator | Randomness,
    ) -> Verdict:
        """See :meth:`pcg.acceptance.rule.Rule.judge`; ``draft_ids`` must be empty."""
        check_rows(draft_ids, draft_probs, target_probs)
        if len(draft_ids):
            raise PcgError("Target-only decoding drafts nothing: set the lookahead to 0.")
        row = target_probs[-1]
        return Verdict((), 0, **draw_from(row, row, as_randomness(source), "bonus"))


SPEC = RuleSpec(
    name="target",
    label="Target only",
    description="The target speaks alone, one token a step.",
    guarantee="The target itself: the baseline of every comparison.",
    source="baseline",
    make=TargetRule,
)
