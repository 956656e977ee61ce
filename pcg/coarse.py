"""Coarse probabilities over overlapping groups, and the residual by thinning (PCG, section 3.2).

A token belongs to the groups S(t) and gives each an equal share of its probability:
w[k, t] = 1 / |S(t)|. Hence P_c(k) = sum over t in G_k of w[k, t] P(t), which sums to 1.
`draft` and `target` are probability rows, P and Q in the paper. Sums are float64.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from pcg.groups import AcousticGroups
from pcg.randomness import RandomSource

TRIALS_AT_ONCE = 8  # thinning trials drawn together
TRIAL_CAP = 64  # failed trials after which the residual is enumerated exactly instead
TINY = 1e-12  # a residual of less mass than this is rounding noise


@dataclass(frozen=True)
class Residual:
    """What replaces a rejected draft token.

    kind: "residual" (from the positive part of target minus draft) or "fallback" (that part was
    empty, so drawn from the target). trials: thinning trials used. enumerated: the cap was hit.
    """

    token: int
    label: int | None
    trials: int
    kind: str = "residual"
    enumerated: bool = False


def coarse_probs(rows: Tensor, groups: AcousticGroups, labels: Sequence[int]) -> Tensor:
    """Coarse probability of a few groups: rows (..., V), n labels -> (..., n) float64.

    Costs the sum of the sizes of the groups named, whatever V is.
    """
    members = [groups.members(label) for label in labels]
    flat = torch.cat(members) if len(members) != 1 else members[0]
    flat = flat.to(rows.device)
    shares = rows.index_select(-1, flat).double() * groups.weights.to(rows.device)[flat]
    if len(members) == 1:
        return shares.sum(-1, keepdim=True)
    sizes = [len(part) for part in members]
    return torch.stack([part.sum(-1) for part in shares.split(sizes, -1)], -1)


def coarse_all(rows: Tensor, groups: AcousticGroups) -> Tensor:
    """Coarse probability of every group: rows (..., V) -> (..., V) float64, each summing to 1.

    Costs every membership once; meant for enumeration and analysis, not for the decoding loop.
    """
    weighted = (rows.double() * groups.weights).reshape(-1, groups.vocab_size)
    sums = [
        torch.segment_reduce(row[groups.indices], "sum", offsets=groups.indptr) for row in weighted
    ]
    return torch.stack(sums).reshape(rows.shape) if sums else rows.double()


def draw_labels(tokens: Sequence[int], groups: AcousticGroups, source: RandomSource) -> list[int]:
    """For each token a group that contains it, uniform over S(t): P_c is the law of the label."""
    places = source.index([groups.size(token) for token in tokens])
    return [
        int(groups.indices[groups.bounds[token] + place])
        for token, place in zip(tokens, places, strict=True)
    ]


def overlap(draft: Tensor, target: Tensor) -> Tensor:
    """alpha = sum of min(P, Q), the chance that a draft is kept: rows (..., V) -> (...) float64."""
    return torch.minimum(draft.double(), target.double()).sum(-1)


def group_overlap(draft: Tensor, target: Tensor, groups: AcousticGroups) -> Tensor:
    """alpha_c = sum of min(P_c, Q_c) over all groups: rows (..., V) -> (...) float64."""
    return overlap(coarse_all(draft, groups), coarse_all(target, groups))


def group_residual(
    draft: Tensor,
    target: Tensor,
    groups: AcousticGroups,
    source: RandomSource,
    *,
    at_once: int = TRIALS_AT_ONCE,
    cap: int = TRIAL_CAP,
) -> Residual:
    """A token whose group follows (Q_c - P_c)_+ / Z, by thinning; rows (V,).

    A trial draws t' from Q and k' uniformly from S(t'), and passes iff u Q_c(k') < Q_c(k') -
    P_c(k'): label k comes out with probability (Q_c - P_c)_+(k). Trials are independent, so the
    first to pass has the law wanted, after 1 / Z trials on average. After `cap` failures the same
    law is drawn by enumeration.
    """

    def margins(tokens: list[int]) -> tuple[list[int | None], list[float], list[float]]:
        labels = draw_labels(tokens, groups, source)
        pairs = coarse_probs(torch.stack([draft, target]), groups, labels)
        drafts, targets = pairs.tolist()
        return list(labels), targets, [q - p for p, q in zip(drafts, targets, strict=True)]

    def enumerate_all() -> tuple[Tensor, Tensor | None]:
        return (coarse_all(target, groups) - coarse_all(draft, groups)).clamp_(min=0.0), None

    return _thin(target, margins, enumerate_all, source, groups, at_once, cap)


def token_residual(
    draft: Tensor,
    target: Tensor,
    source: RandomSource,
    *,
    at_once: int = TRIALS_AT_ONCE,
    cap: int = TRIAL_CAP,
) -> Residual:
    """A token from (Q - P)_+ / Z, the residual of exact speculative decoding; rows (V,).

    Drawn by the same thinning as `group_residual`, so that exact decoding and PCG with groups of
    one token spend the same random numbers on the same choices.
    """

    def margins(tokens: list[int]) -> tuple[list[int | None], list[float], list[float]]:
        ids = torch.tensor(tokens, device=target.device)
        drafts, targets = draft[ids].double().tolist(), target[ids].double().tolist()
        return [None] * len(tokens), targets, [q - p for p, q in zip(drafts, targets, strict=True)]
    ...
