"""Grouped speculative decoding (GSD): groups around a token in the target's sorted row.

arXiv 2508.07747.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from pcg.acceptance.rule import Parameter, RuleSpec, Verdict
from pcg.acceptance.threshold import judge_by_threshold
from pcg.errors import PcgError
from pcg.randomness import Randomness

SIZE = Parameter("size", "group size", 14, 1, 200, 1, "Neighbours in the sorted row.", "int")
MAX_DIFFERENCE, MAX_DISTANCE = 0.15, 0.5


class GsdRule:
    """Accept with ``min(1, sum Q / sum P)`` over a group made anew for each token.

    The group: among the ``size`` tokens next to x in the target's sorted row, those whose target
    probability differs by less than 0.15 and whose unit embeddings lie less than 0.5 apart. A
    rejection falls back to SD's residual.
    """

    name = "gsd"

    def __init__(self, embeddings: Tensor | None, size: float = SIZE.default) -> None:
        if embeddings is None:
            raise PcgError("GSD needs the target's embedding table.")
        rows = embeddings.float()
        self.unit = rows / rows.norm(dim=1, keepdim=True).clamp(min=1e-12)
        self.size = int(SIZE.check(size))
        self.params = {"size": float(self.size)}

    def group(self, token: int, target_row: Tensor) -> Tensor:
        """Ids of the token's group, the token included."""
        own = torch.tensor([token], device=target_row.device)
        if token >= len(self.unit):
            return own
        order = target_row[: len(self.unit)].argsort(descending=True, stable=True)
        place = int((order == token).nonzero()[0, 0])
        near = order[max(0, place - self.size // 2) : place + self.size - self.size // 2 + 1]
        unit = self.unit.to(target_row.device)
        close = (unit[near] - unit[token]).norm(dim=1) < MAX_DISTANCE
        alike = (target_row[near] - target_row[token]).abs() < MAX_DIFFERENCE
        chosen = near[close & alike]
        return torch.cat([own, chosen[chosen != token]])

    def judge(
        self,
        draft_ids: Sequence[int],
        draft_probs: Tensor,
        target_probs: Tensor,
        source: torch.Generator | Randomness,
    ) -> Verdict:
        """See :meth:`pcg.acceptance.rule.Rule.judge`."""

        def threshold(place: int, token: int) -> tuple[float, float]:
            group = self.group(token, target_probs[place])
            target = float(target_probs[place, group].double().sum())
            return target, float(draft_probs[place, group].double().sum())

        return judge_by_threshold(draft_ids, draft_probs, target_probs, source, threshold)


SPEC = RuleSpec(
    name="gsd",
    label="GSD",
    description="Groups tokens that are neighbours in the target's sorted row and sound alike.",
    guarantee="None.",
    source="arXiv 2508.07747",
    make=GsdRule,
    parameters=(SIZE,),
    needs_embeddings=True,
)
