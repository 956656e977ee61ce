"""The interface of an acceptance rule, the record it returns, and what all rules share.

A rule is a pure function of probability rows, drafted ids and a source of chance. It knows no
model, no cache and no file. Vocabulary of the records: a *drafted* token is accepted or rejected;
the first rejected one is replaced by a *residual* token and ends the block; if all are accepted a
*bonus* token is drawn at the next position.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol

import torch
from torch import Tensor

from pcg.coarse import Residual, token_residual
from pcg.errors import PcgError
from pcg.randomness import RandomSource, as_randomness

_SUM_TOLERANCE = 1e-3  # of a probability row; low-precision models stay well inside


@dataclass(frozen=True)
class Judgement:
    """One drafted token, weighed.

    `draft_prob`, `target_prob` are P(t), Q(t). For rules with groups: the group drawn, its size
    and its coarse probabilities, else None. `ratio` is the chance of acceptance before it is
    capped at 1 (inf where the draft gave no mass). `exact_accepts`: exact speculative decoding
    would have accepted with this very `u`. `why` is a sentence for a reader.
    """

    position: int
    token: int
    draft_prob: float
    target_prob: float
    group: int | None
    group_size: int | None
    draft_coarse: float | None
    target_coarse: float | None
    u: float
    ratio: float
    accepted: bool
    exact_accepts: bool
    why: str


@dataclass(frozen=True)
class Verdict:
    """What a rule decided about one block of drafted tokens.

    judgements: up to and including the first rejected. accepted: how many were kept. next_token:
    the bonus or the replacement; next_prob its target probability; next_group its label where the
    rule drew one. next_kind: "bonus", "residual", or "fallback" (the residual had no mass). trials:
    thinning trials used. details: anything else a rule wants shown, JSON values only.
    """

    judgements: tuple[Judgement, ...]
    accepted: int
    next_token: int
    next_kind: str
    next_prob: float
    next_group: int | None = None
    trials: int = 0
    details: Mapping[str, Any] = field(default_factory=dict)


class Rule(Protocol):
    """What the decoding loop needs of a rule."""

    name: str
    params: dict[str, Any]

    def judge(
        self,
        draft_ids: Sequence[int],
        draft_probs: Tensor,
        target_probs: Tensor,
        generator: torch.Generator | RandomSource,
    ) -> Verdict:
        """Weigh g drafted ids: draft_probs (g, V) they were drawn from, target_probs (g+1, V)."""
        ...


@dataclass(frozen=True)
class Weighed:
    """A rule's view of one drafted token before chance decides: accept iff u * weight < bound."""

    weight: float
    bound: float
    group: int | None = None
    group_size: int | None = None


class BlockRule(ABC):
    """A rule that weighs the tokens of a block one after the other: accept iff u weight < bound.

    A rule says what weight and bound are (`weigh`) and, if it differs from exact decoding, what
    replaces a rejected token (`replace`). The block is walked here, once for all rules.
    """

    name: ClassVar[str]
    vocab_size: int | None = None

    @property
    def params(self) -> dict[str, Any]:
        """The parameters by name, as shown and stored."""
        return {}

    @abstractmethod
    def weigh(self, token: int, draft: Tensor, target: Tensor, source: RandomSource) -> Weighed:
        """Weight and bound for `token` drawn from `draft` (V,), given the `target` row (V,)."""

    def replace(
        self, token: int, draft: Tensor, target: Tensor, weighed: Weighed, source: RandomSource
    ) -> Residual:
        """The token that replaces a rejected one; by default from the residual of exact SD."""
        return token_residual(draft, target, source)

    def judge(
        self,
        draft_ids: Sequence[int],
        draft_probs: Tensor,
        target_probs: Tensor,
        generator: torch.Generator | RandomSource,
    ) -> Verdict:
        """See `Rule.judge`; raises `PcgError` for rows that do not fit together or hold NaN."""
        check_block(draft_ids, draft_probs, target_probs, self.vocab_size)
        source = as_randomness(generator)
        judgements: list[Judgement] = []
        for position, token in enumerate(draft_ids):
            draft, target = draft_probs[position], target_probs[position]
            weighed = self.weigh(token, draft, target, source)
            u, accepted = source.trial([weighed.weight], [weighed.bound])[0]
            probs = (float(draft[token]), float(target[token]))
            judgements.append(_record(position, token, probs, weighed, u, accepted))
            if not accepted:
                residual = self.replace(token, draft, target, weighed, source)
                return _rejected(judgements, residual, target)
        return _all_accepted(judgements, target_probs[len(draft_ids)], source)


def _rejected(judgements: list[Judgement], residual: Residual, target: Tensor) -> Verdict:
    return Verdict(
        tuple(judgements), len(judgements) - 1, residual.token, residual.kind,
        float(target[residual.token]), residual.label, residual.trials,
        {"enumerated": True} if residual.enumerated else {},
    )  # fmt: skip


def _all_accepted(judgements: list[Judgement], target: Tensor, source: RandomSource) -> Verdict:
    token = source.categorical(target)[0]
    return Verdict(tuple(judgements), len(judgements), token, "bonus", float(target[token]))


def _record(
    position: int, token: int, probs: tuple[float, float], weighed: Weighed, u: float, accepted: bool
) -> Judgement:  # fmt: skip
    draft_prob, target_prob = probs
    grouped = weighed.group is not None
    return Judgement(
        position=position,
        token=token,
        draft_prob=draft_prob,
        target_prob=target_prob,
        group=weighed.group,
        group_size=weighed.group_size,
        draft_coarse=weighed.weight if grouped else None,
        target_coarse=weighed.bound if grouped else None,
        u=u,
        ratio=_ratio(weighed.weight, weighed.bound),
        accepted=accepted,
        exact_accepts=u * draft_prob < target_prob,
        why=_explain(weighed, u, accepted),
    )


def _ratio(weight: float, bound: float) -> float:
    if weight > 0.0:
        return max(bound, 0.0) / weight
    return math.inf if bound > 0.0 else 0.0


def _explain(weighed: Weighed, u: float, accepted: bool) -> str:
    subject = "the token"
    if weighed.group is not None:
        ids = "1 token" if weighed.group_size == 1 else f"{weighed.group_size} tokens"
        subject = f"group {weighed.group} of {ids}"
    verdict = "kept" if accepted else "thrown away"
    ratio = _ratio(weighed.weight, weighed.bound)
    if ratio >= 1.0:
        return f"{verdict}: the rule gives {subject} a full chance (ratio {ratio:.3g})"
    sign = "<" if accepted else ">="
    return f"{verdict}: u = {u:.3f} {sign} {ratio:.3g}, the chance the rule gives {subject}"


def check_block(
    draft_ids: Sequence[int], draft_probs: Tensor, target_probs: Tensor, vocab_size: int | None
) -> None:
    """Raise `PcgError` unless ids and rows fit each other, the rule's groups and probability."""
    count = len(draft_ids)
    if target_probs.ndim != 2 or len(target_probs) != count + 1:
        raise PcgError(f"{count} drafted ids need {count + 1} target rows of one vocabulary.")
    size = target_probs.shape[1]
    if count and tuple(draft_probs.shape) != (count, size):
        raise PcgError(f"{count} drafted ids need as many draft rows of {size} ids.")
    if vocab_size is not None and size != vocab_size:
        raise PcgError(
            f"The rule's groups are for {vocab_size} ids but the rows have {size}; "
            "rebuild the groups for this model."
        )
    for token in draft_ids:
        if not 0 <= token < size:
            raise PcgError(f"Drafted id {token} lies outside the vocabulary of {size}.")
    sums = target_probs.sum(-1).tolist() + (draft_probs.sum(-1).tolist() if count else [])
    if not all(abs(total - 1.0) <= _SUM_TOLERANCE for total in sums):
        raise PcgError("A probability row is NaN or does not sum to 1; pass logits_to_probs' rows.")
