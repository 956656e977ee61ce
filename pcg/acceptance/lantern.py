"""LANTERN and LANTERN++: a token borrows the target mass of its nearest neighbours.

arXiv 2410.03355 and 2502.06352. Neighbours by embedding distance, the token itself excluded.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import torch
from torch import Tensor

from pcg.acceptance.rule import Parameter, RuleSpec, Verdict, positive_part
from pcg.acceptance.threshold import judge_by_threshold
from pcg.errors import PcgError
from pcg.randomness import Randomness

NEIGHBOURS = Parameter("k", "neighbours k", 10, 1, 200, 1, "How many neighbours may lend.", "int")
DELTA = Parameter("delta", "delta", 0.2, 0.0, 1.0, 0.01, "Largest mass that is borrowed a step.")
LAMBDA = Parameter("lam", "lambda", 2.0, 1.0, 20.0, 0.1, "Q may grow at most by this factor.")


class LanternRule:
    """Accept when ``u P(x) < Q(x) + c``, with c the mass of as many nearest neighbours as fit.

    They fit while c <= ``delta`` (LANTERN) or c <= ``(lam - 1) Q(x)`` (LANTERN++). On a rejection
    the draft's mass on the neighbours used is set to 0 before ``norm (Q - P)+``.
    """

    def __init__(
        self,
        embeddings: Tensor | None,
        k: float = NEIGHBOURS.default,
        delta: float | None = None,
        lam: float | None = None,
    ) -> None:
        if embeddings is None:
            raise PcgError("LANTERN needs the target's embedding table.")
        self.embeddings, self.k = embeddings.float(), int(NEIGHBOURS.check(k))
        self.name = "lantern" if lam is None else "lantern++"
        self.delta = DELTA.check(DELTA.default if delta is None else delta)
        self.lam = None if lam is None else LAMBDA.check(lam)
        limit = {"delta": self.delta} if self.lam is None else {"lam": self.lam}
        self.params: dict[str, float] = {"k": float(self.k), **limit}
        self._near: dict[int, Tensor] = {}

    def neighbours(self, token: int) -> Tensor:
        """The ``k`` nearest codes, nearest first; none for ids that are not codes."""
        if token not in self._near:
            if token >= len(self.embeddings):
                return torch.empty(0, dtype=torch.long)
            distance = (self.embeddings - self.embeddings[token]).square().sum(1)
            distance[token] = torch.inf
            count = min(self.k, len(distance) - 1)
            self._near[token] = distance.topk(count, largest=False).indices
        return self._near[token]

    def lent(self, token: int, target_row: Tensor) -> tuple[Tensor, float]:
        """(neighbours used, mass they lend)."""
        near = self.neighbours(token).to(target_row.device)
        sums = target_row[near].double().cumsum(0)
        allowed = self.delta if self.lam is None else (self.lam - 1) * float(target_row[token])
        used = int((sums <= allowed).sum())
        return near[:used], float(sums[used - 1]) if used else 0.0

    def judge(
        self,
        draft_ids: Sequence[int],
        draft_probs: Tensor,
        target_probs: Tensor,
        source: torch.Generator | Randomness,
    ) -> Verdict:
        """See :meth:`pcg.acceptance.rule.Rule.judge`."""

        def threshold(place: int, token: int) -> tuple[float, float]:
            _, mass = self.lent(token, target_probs[place])
            return float(target_probs[place, token]) + mass, float(draft_probs[place, token])

        def residual(place: int, token: int) -> tuple[Tensor, str]:
            draft = draft_probs[place].clone()
            draft[self.lent(token, target_probs[place])[0]] = 0.0
            return positive_part(target_probs[place], draft)

        return judge_by_threshold(draft_ids, draft_probs, target_probs, source, threshold, residual)


SPEC = RuleSpec(
    name="lantern",
    label="LANTERN",
    description="A token borrows the target's mass of its nearest neighbours, up to delta.",
    guarantee="Moves at most delta of total variation per step.",
    source="arXiv 2410.03355",
    make=LanternRule,
    parameters=(NEIGHBOURS, DELTA),
    needs_embeddings=True,
)
SPEC_PLUS = RuleSpec(
    name="lantern++",
    label="LANTERN++",
    description="LANTERN whose loan is at most (lambda - 1) times the token's own mass.",
    guarantee="Moves at most (lambda - 1) Q(x) for each drafted token x per step.",
    source="arXiv 2502.06352",
    make=partial(LanternRule, lam=LAMBDA.default),
    parameters=(NEIGHBOURS, LAMBDA),
    needs_embeddings=True,
)
SPECS = (SPEC, SPEC_PLUS)
