"""What acceptance is worth: expected tokens, expected speed-up, acceptance over theta, drift."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from pcg.coarse import all_coarse_probs, token_alpha
from pcg.errors import PcgError
from pcg.groups import AcousticGroups, NestedGroups


def expected_tokens(alpha: float, lookahead: int) -> float:
    """Mean tokens a round, ``(1 - a^(g+1)) / (1 - a)`` (Leviathan, eq. 1), the last included."""
    if not 0 <= alpha <= 1 or lookahead < 0:
        raise PcgError("Acceptance must be between 0 and 1 and the lookahead 0 or more.")
    return float(sum(alpha**i for i in range(lookahead + 1)))


def expected_speedup(alpha: float, lookahead: int, c: float, v: float) -> float:
    """Speed over target-only, ``E / (g c + v)``.

    ``c``: time of one draft token over one target token. ``v``: time to verify g + 1 tokens over
    the time of one.
    """
    if c < 0 or v <= 0:
        raise PcgError("The cost ratios c and v must be positive.")
    return expected_tokens(alpha, lookahead) / (lookahead * c + v)


def stack_rows(rounds: Sequence[Any]) -> tuple[Tensor, Tensor]:
    """(draft ``(n, V)``, target ``(n, V)``) rows of every drafted position of rounds with rows."""
    pairs = [r.rows for r in rounds if r.rows is not None and len(r.rows[0])]
    if not pairs:
        raise PcgError("This run kept no probability rows: run it again with rows kept.")
    return torch.cat([d for d, _ in pairs]), torch.cat([t[: len(d)] for d, t in pairs])


def sd_alpha(draft_probs: Tensor, target_probs: Tensor) -> float:
    """Mean over positions of ``sum min(P, Q)``."""
    return float(token_alpha(draft_probs, target_probs).mean())


def ssd_alpha(draft_probs: Tensor, target_probs: Tensor, beta: float) -> float:
    """Mean over positions of ``sum P min(1, min(1, Q/P) + beta)``."""
    return float(_ssd_accepted(draft_probs, target_probs, beta).sum(-1).mean())


def _ssd_accepted(draft_probs: Tensor, target_probs: Tensor, beta: float) -> Tensor:
    draft, target = draft_probs.double(), target_probs.double()
    return torch.minimum(draft, torch.minimum(draft, target) + beta * draft)


def alpha_over_thetas(
    draft_probs: Tensor, target_probs: Tensor, nested: NestedGroups, thetas: Sequence[float]
) -> list[float]:
    """Exact expected group acceptance at each theta, from one run's rows ``(n, V)``; no re-run."""
    difference = (draft_probs.double() - target_probs.double()).T
    alphas = []
    for theta in thetas:
        groups = nested.at(theta)
        matrix = torch.sparse_csr_tensor(
            groups.indptr.long(),
            groups.indices.long(),
            torch.ones(len(groups.indices), dtype=torch.float64),
            (len(difference), len(difference)),
        )
        coarse = matrix @ (difference / groups.sizes[:, None])
        alphas.append(1.0 - float(coarse.abs().sum(0).mean()) / 2)
    return alphas


def ssd_law(draft_probs: Tensor, target_probs: Tensor, beta: float) -> Tensor:
    """Law ``(..., V)`` of the token that SSD emits at one position."""
    accepted = _ssd_accepted(draft_probs, target_probs, beta)
    return accepted + _residual_share(draft_probs, target_probs, 1 - accepted.sum(-1))


def _residual_share(draft_probs: Tensor, target_probs: Tensor, rejected: Tensor) -> Tensor:
    excess = (target_probs.double() - draft_probs.double()).clamp(min=0)
    total = excess.sum(-1, keepdim=True)
    law = torch.where(total > 1e-12, excess / total.clamp(min=1e-300), target_probs.double())
    return rejected[..., None] * law


def grouped_law(draft_row: Tensor, target_row: Tensor, groups: AcousticGroups) -> Tensor:
    """Law ``(V,)`` of the token that PCG emits at one position.

    Accepted: ``P(t) sum over k in S(t) of w min(1, Q_c/P_c)(k)``; rejected: a label from
    ``(Q_c - P_c)+``, then a member in proportion to ``w Q``.
    """
    draft, target = draft_row.double(), target_row.double()
    coarse_draft, coarse_target = (all_coarse_probs(row, groups) for row in (draft, target))
    passed = torch.where(
        coarse_draft > 0,
        torch.minimum(
            coarse_target / coarse_draft.clamp(min=1e-300), torch.ones_like(coarse_draft)
        ),
        0.0,
    )
    excess = (coarse_target - coarse_draft).clamp(min=0)
    needed = torch.where(coarse_target > 0, excess / coarse_target.clamp(min=1e-300), 0.0)
    weights = 1.0 / groups.sizes.double()
    rows, members = groups.rows, groups.indices.long()
    out = torch.zeros_like(draft)
    accepted = draft[members] * weights[members] * passed[rows]
    residual = target[members] * weights[members] * needed[rows]
    return out.index_add_(0, members, accepted + residual)


def drift(law: Tensor, target_probs: Tensor) -> Tensor:
    """Total variation ``(...)`` between a law and the target's row."""
    return (law - target_probs.double()).abs().sum(-1) / 2


def equal_acceptance_beta(draft_probs: Tensor, target_probs: Tensor, alpha: float) -> float:
    """The beta at which SSD accepts as often as ``alpha``; 0 when SD already does."""
    low, high = 0.0, 1.0
    for _ in range(50):
        middle = (low + high) / 2
        if ssd_alpha(draft_probs, target_probs, middle) < alpha:
            low = middle
        else:
            high = middle
    return high if high > 1e-9 else 0.0
