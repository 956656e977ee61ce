"""What an acceptance rule is, and the record it leaves.

A rule is a pure function of the drafted ids, the draft's rows they were drawn from, the target's
rows and a source of randomness. It returns a :class:`Verdict` that holds everything a person can
be shown about the round.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import torch
from torch import Tensor

from pcg.errors import PcgError
from pcg.groups import AcousticGroups
from pcg.randomness import Randomness

TINY = 1e-12


@dataclass(frozen=True)
class Judgement:
    """One drafted token. ``ratio`` is what u was compared with; ``exact_accepts`` whether SD would
    have accepted with this very u. Group fields are None for rules without groups."""

    position: int
    token: int
    draft_prob: float
    target_prob: float
    u: float
    ratio: float
    accepted: bool
    exact_accepts: bool
    why: str
    group: int | None = None
    group_size: int | None = None
    draft_coarse: float | None = None
    target_coarse: float | None = None


@dataclass(frozen=True)
class Verdict:
    """One round: judgements up to and including the first rejection, and the token that ends it.

    ``next_kind``: bonus (all accepted), residual (after a rejection), or fallback (a residual
    without mass, so the target's own row was used). ``next_prob``: the target's probability of
    ``next_token``. ``trials``: thinning trials.
    """

    judgements: tuple[Judgement, ...]
    accepted: int
    next_token: int
    next_kind: str
    next_prob: float
    next_group: int | None = None
    trials: int = 0
    details: dict[str, Any] = field(default_factory=dict)


class Rule(Protocol):
    """An acceptance rule with its parameters fixed."""

    @property
    def name(self) -> str: ...

    @property
    def params(self) -> dict[str, float]: ...

    def judge(
        self,
        draft_ids: Sequence[int],
        draft_probs: Tensor,
        target_probs: Tensor,
        source: torch.Generator | Randomness,
    ) -> Verdict:
        """``draft_ids`` (g,), ``draft_probs`` (g, V), ``target_probs`` (g + 1, V), float32 rows.

        Raises:
            PcgError: when shapes do not fit, rows are not probabilities, or the groups were built
                for another vocabulary.
        """
        ...


@dataclass(frozen=True)
class Parameter:
    """A control of a rule: the page and the command line are built from it."""

    name: str
    label: str
    default: float
    minimum: float
    maximum: float
    step: float
    help: str
    kind: str = "float"

    def check(self, value: Any) -> float:
        """``value`` as a number within range; raises PcgError otherwise."""
        try:
            number = float(value)
        except (TypeError, ValueError):
            number = math.nan
        if not self.minimum <= number <= self.maximum:
            raise PcgError(f"{self.label} must be between {self.minimum:g} and {self.maximum:g}.")
        if self.kind == "int" and number != int(number):
            raise PcgError(f"{self.label} must be a whole number.")
        return int(number) if self.kind == "int" else number


@dataclass(frozen=True)
class RuleSpec:
    """A registered rule: what it promises, what it needs, and how it is made."""

    name: str
    label: str
    description: str
    guarantee: str
    source: str
    make: Callable[..., Rule]
    parameters: tuple[Parameter, ...] = ()
    needs_groups: bool = False
    needs_embeddings: bool = False


def check_rows(
    draft_ids: Sequence[int],
    draft_probs: Tensor,
    target_probs: Tensor,
    groups: AcousticGroups | None = None,
) -> None:
    """Raises PcgError unless the arguments of :meth:`Rule.judge` fit together."""
    count = len(draft_ids)
    if target_probs.ndim != 2 or len(target_probs) != count + 1:
        raise PcgError("The target must give one row for each drafted token and one more.")
    if count and (draft_probs.ndim != 2 or draft_probs.shape != target_probs[:-1].shape):
        raise PcgError("Draft and target must give rows over the same vocabulary.")
    if count and (min(draft_ids) < 0 or max(draft_ids) >= target_probs.shape[-1]):
        raise PcgError("A drafted id lies outside the vocabulary of the rows.")
    sums: list[float] = target_probs.sum(-1).tolist()
    if count:
        sums += draft_probs.sum(-1).tolist()
    if not all(abs(total - 1) < 1e-3 for total in sums):
        raise PcgError("A row is not a probability distribution: it must be finite and sum to 1.")
    if groups is not None and groups.vocab_size != target_probs.shape[-1]:
        raise PcgError(
            f"These groups were built for {groups.vocab_size} ids, the models have "
            f"{target_probs.shape[-1]}: build groups from this model's embeddings."
        )


def draw_from(row: Tensor, target_row: Tensor, source: Randomness, kind: str) -> dict[str, Any]:
    """Verdict fields for a token drawn from ``row``."""
    token = source.categorical(row)
    return {"next_token": token, "next_kind": kind, "next_prob": float(target_row[token])}


def positive_part(target_row: Tensor, draft_row: Tensor) -> tuple[Tensor, str]:
    """``norm (Q - P)+`` and "residual", or ``Q`` and "fallback" where nothing is left."""
    excess = (target_row.double() - draft_row.double()).clamp(min=0)
    total = float(excess.sum())
    if total <= TINY:
        return target_row, "fallback"
    return excess / total, "residual"


def safe_ratio(target: float, draft: float) -> float:
    """``target / draft``; infinite where the draft has no mass."""
    return target / draft if draft > 0 else math.inf
