"""Exact speculative sampling (SD): the emitted tokens follow the target's law.

Leviathan et al., arXiv 2211.17192, algorithm 1; Chen et al., arXiv 2302.01318.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor

from pcg.acceptance.grouped import judge_grouped
from pcg.acceptance.rule import Judgement, RuleSpec, Verdict
from pcg.coarse import MAX_TRIALS, TRIALS_A_BATCH
from pcg.groups import AcousticGroups
from pcg.randomness import Randomness


class ExactRule:
    """Accept when ``u P(t) < Q(t)``; otherwise draw from ``norm (Q - P)+`` by thinning.

    This is group acceptance with every token alone in its group, and shares its code, so that the
    two give the same tokens from the same random stream there.
    """

    name = "sd"

    def __init__(self, max_trials: int = MAX_TRIALS, batch: int = TRIALS_A_BATCH) -> None:
        self.max_trials, self.batch = max_trials, batch
        self.params: dict[str, float] = {}
        self._alone: AcousticGroups | None = None

    def judge(
        self,
        draft_ids: Sequence[int],
        draft_probs: Tensor,
        target_probs: Tensor,
        source: torch.Generator | Randomness,
    ) -> Verdict:
        """See :meth:`pcg.acceptance.rule.Rule.judge`."""
        size = target_probs.shape[-1]
        if self._alone is None or self._alone.vocab_size != size:
            self._alone = AcousticGroups.singletons(size).to(target_probs.device)
        verdict = judge_grouped(
            draft_ids, draft_probs, target_probs, source, self._alone, self.max_trials, self.batch
        )
        judged = tuple(_without_group(one) for one in verdict.judgements)
        return Verdict(
            judged,
            verdict.accepted,
            verdict.next_token,
            verdict.next_kind,
            verdict.next_prob,
            trials=verdict.trials,
            details=verdict.details,
        )


def _without_group(one: Judgement) -> Judgement:
    return replace(one, group=None, group_size=None, draft_coarse=None, target_coarse=None)


SPEC = RuleSpec(
    name="sd",
    label="SD (exact)",
    description="Accepts a drafted token with probability min(1, Q/P) of that very token.",
    guarantee="Emitted tokens follow the target's law exactly.",
    source="Leviathan et al., arXiv 2211.17192; Chen et al., arXiv 2302.01318",
    make=ExactRule,
)
