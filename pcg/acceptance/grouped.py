"""Principled Coarse-Graining (PCG): acceptance at the level of overlapping acoustic groups.

arXiv 2511.13732. A label k, uniform among the groups that hold the drafted token, is accepted when
``u P_c(k) < Q_c(k)``; the drafted token is kept. A rejection draws from the group residual. The
labels follow Q_c exactly; the tokens inside a group may come from the draft.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from pcg.acceptance.rule import Judgement, Parameter, RuleSpec, Verdict, check_rows, safe_ratio
from pcg.coarse import MAX_TRIALS, TRIALS_A_BATCH, coarse_pairs, draw_labels, take, thin
from pcg.errors import PcgError
from pcg.groups import AcousticGroups
from pcg.randomness import Randomness, as_randomness


def judge_grouped(
    draft_ids: Sequence[int],
    draft_probs: Tensor,
    target_probs: Tensor,
    source: torch.Generator | Randomness,
    groups: AcousticGroups,
    max_trials: int = MAX_TRIALS,
    batch: int = TRIALS_A_BATCH,
) -> Verdict:
    """Judges one round at the level of ``groups``; see :meth:`pcg.acceptance.rule.Rule.judge`."""
    check_rows(draft_ids, draft_probs, target_probs, groups)
    randomness = as_randomness(source)
    judged: list[Judgement] = []
    weighed = _weigh(list(draft_ids), draft_probs, target_probs, groups, randomness)
    for place, each in enumerate(weighed):
        one = _judge_token(place, each, groups, randomness)
        judged.append(one)
        if not one.accepted:
            left = thin(
                draft_probs[place], target_probs[place], groups, randomness, max_trials, batch
            )
            return Verdict(
                tuple(judged),
                place,
                left.token,
                left.kind,
                float(target_probs[place, left.token]),
                left.group,
                left.trials,
                {"exact_residual": left.exact},
            )
    token = randomness.categorical(target_probs[-1])
    return Verdict(tuple(judged), len(judged), token, "bonus", float(target_probs[-1, token]))


def _weigh(
    draft_ids: list[int],
    draft_probs: Tensor,
    target_probs: Tensor,
    groups: AcousticGroups,
    randomness: Randomness,
) -> list[tuple[int, int, float, float, float, float]]:
    """For each drafted token (token, group drawn, P, Q, P_c, Q_c)."""
    if not draft_ids:
        return []
    labels = draw_labels(draft_ids, groups, randomness)
    coarse = coarse_pairs(draft_probs, target_probs, groups, labels)
    places = np.arange(len(labels)) * target_probs.shape[-1] + draft_ids
    own = [take(rows, places).tolist() for rows in (draft_probs, target_probs)]
    return list(zip(draft_ids, labels, *own, *coarse, strict=True))


def _judge_token(
    place: int,
    weighed: tuple[int, int, float, float, float, float],
    groups: AcousticGroups,
    randomness: Randomness,
) -> Judgement:
    token, group, draft, target, draft_coarse, target_coarse = weighed
    u, accepted = randomness.passes(target_coarse, draft_coarse)
    exact = u * draft < target
    ratio = safe_ratio(target_coarse, draft_coarse)
    return Judgement(
        place,
        token,
        draft,
        target,
        u,
        ratio,
        accepted,
        exact,
        _explain(accepted, exact, u, ratio, groups.size(group)),
        group,
        groups.size(group),
        draft_coarse,
        target_coarse,
    )


def _explain(accepted: bool, exact: bool, u: float, ratio: float, size: int) -> str:
    among = "alone in its group" if size == 1 else f"in a group of {size} that sound alike"
    if accepted and exact:
        return f"Accepted: u = {u:.3f} < Q/P = {ratio:.3g}, {among}; exact matching accepts it too."
    if accepted:
        return (
            f"Accepted thanks to the group: u = {u:.3f} < Q_c/P_c = {ratio:.3g} ({among}); "
            "exact matching would have rejected it."
        )
    return f"Rejected: u = {u:.3f} is not below Q_c/P_c = {ratio:.3g} ({among})."


class GroupedRule:
    """PCG over one set of groups."""

    name = "pcg"

    def __init__(
        self,
        groups: AcousticGroups | None,
        theta: float | None = None,
        max_trials: int = MAX_TRIALS,
        batch: int = TRIALS_A_BATCH,
    ) -> None:
        if groups is None:
            raise PcgError("PCG needs groups: build them from the target's embeddings.")
        self.groups, self.max_trials, self.batch = groups, max_trials, batch
        self.params = {"theta": float(theta if theta is not None else groups.theta)}

    def judge(
        self,
        draft_ids: Sequence[int],
        draft_probs: Tensor,
        target_probs: Tensor,
        source: torch.Generator | Randomness,
    ) -> Verdict:
        """See :meth:`pcg.acceptance.rule.Rule.judge`."""
        if self.groups.indices.device != target_probs.device:
            self.groups = self.groups.to(target_probs.device)
        return judge_grouped(
            draft_ids, draft_probs, target_probs, source, self.groups, self.max_trials, self.batch
        )


SPEC = RuleSpec(
    name="pcg",
    label="PCG (groups)",
    description="Accepts a drafted token when a group of like-sounding tokens around it passes.",
    guarantee="Group labels follow the target's group law exactly, step by step; tokens may not.",
    source="arXiv 2511.13732",
    make=GroupedRule,
    parameters=(
        Parameter(
            "theta",
            "theta",
            0.4,
            -0.99,
            1.0,
            0.01,
            "Tokens whose embeddings have a cosine above theta share a group: lower is larger.",
        ),
    ),
    needs_groups=True,
)
