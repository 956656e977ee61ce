"""Coarse probabilities over overlapping groups, and their residual by thinning.

A token's mass is split equally among the groups that contain it (PCG, arXiv 2511.13732):
``P_c(k) = sum over t in G_k of P(t) / |S(t)|``, where S(t), the groups that contain t, has the
members of G_t. Sums are in float64 over the groups touched, never over the vocabulary.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pcg.groups import AcousticGroups
from pcg.randomness import Randomness

TRIALS_A_BATCH = 4
LARGEST_BATCH = 64
MAX_TRIALS = 1024


def coarse_probs(probs: Tensor, groups: AcousticGroups, chosen: Tensor) -> Tensor:
    """Coarse probabilities ``(..., n)`` float64 of the groups ``chosen`` ``(n,)``.

    ``probs`` is one row ``(V,)`` or several ``(..., V)``.
    """
    found, _, sizes = groups.gather(chosen.tolist())
    members = torch.from_numpy(found).to(probs.device)
    owner = torch.from_numpy(np.repeat(np.arange(len(sizes)), sizes)).to(probs.device)
    mass = probs[..., members] * groups.weights[members]
    out = mass.new_zeros((*probs.shape[:-1], len(chosen)))
    return out.index_add_(-1, owner, mass)


def coarse_pairs(
    draft_rows: Tensor, target_rows: Tensor, groups: AcousticGroups, chosen: list[int]
) -> tuple[list[float], list[float]]:
    """(P_c, Q_c) of each of the groups ``chosen``.

    ``draft_rows`` and ``target_rows``: one row ``(V,)`` for all of them, or ``(n, V)``, row i for
    ``chosen[i]``.
    """
    members, starts, sizes = groups.gather(chosen)
    shares, places = groups.shares[members], members
    if target_rows.ndim == 2:
        places = members + np.repeat(np.arange(len(chosen)) * target_rows.shape[-1], sizes)
    draft, target = (
        np.add.reduceat(take(rows, places) * shares, starts).tolist()
        for rows in (draft_rows, target_rows)
    )
    return draft, target


def take(rows: Tensor, places: NDArray[np.int64]) -> NDArray[Any]:
    """Entries of ``rows``, read end to end, at ``places`` ``(n,)``: one gather where they lie."""
    flat = rows.reshape(-1)
    if flat.device.type == "cpu":
        return np.asarray(flat.numpy()[places])
    return np.asarray(flat[torch.from_numpy(places).to(flat.device)].cpu().numpy())


def all_coarse_probs(probs: Tensor, groups: AcousticGroups) -> Tensor:
    """Coarse probabilities ``(..., V)`` float64 of every group: O(pairs)."""
    mass = (probs * groups.weights)[..., groups.indices.long()]
    out = mass.new_zeros(probs.shape)
    return out.index_add_(-1, groups.rows, mass)


def draw_labels(tokens: list[int], groups: AcousticGroups, randomness: Randomness) -> list[int]:
    """For each token a group that contains it, uniformly: its law is P_c when token ~ P."""
    places = [groups.start(token) + randomness.index(groups.size(token)) for token in tokens]
    chosen: list[int] = groups.flat[places].tolist()
    return chosen


def token_alpha(draft_probs: Tensor, target_probs: Tensor) -> Tensor:
    """``sum min(P, Q)`` ``(...)``: the acceptance probability of exact matching."""
    return torch.minimum(draft_probs.double(), target_probs.double()).sum(-1)


def group_alpha(draft_probs: Tensor, target_probs: Tensor, groups: AcousticGroups) -> Tensor:
    """``sum min(P_c, Q_c)`` ``(...)``: the acceptance probability of group matching."""
    return token_alpha(
        all_coarse_probs(draft_probs, groups), all_coarse_probs(target_probs, groups)
    )


@dataclass(frozen=True)
class Residual:
    """What a rejection emits: ``kind`` is residual, or fallback where the residual has no mass."""

    token: int
    group: int
    trials: int
    exact: bool
    kind: str


def thin(
    draft_probs: Tensor,
    target_probs: Tensor,
    groups: AcousticGroups,
    randomness: Randomness,
    max_trials: int = MAX_TRIALS,
    batch: int = TRIALS_A_BATCH,
) -> Residual:
    """Draws (token, group) whose group has the law ``(Q_c - P_c)+ / Z``.

    One trial: t ~ Q, k uniform over S(t), pass if ``u Q_c(k) < Q_c(k) - P_c(k)``. Trials are drawn
    ``batch`` at a time, each batch twice the one before, and the first that passes counts. After
    ``max_trials`` the residual is enumerated exactly; the law is the same.
    """
    done = 0
    while done < max_trials:
        count = min(batch, max_trials - done)
        batch = min(2 * batch, max(batch, LARGEST_BATCH))
        tokens = randomness.categoricals(target_probs, count)
        labels = draw_labels(tokens, groups, randomness)
        draft, target = coarse_pairs(draft_probs, target_probs, groups, labels)
        for place, (below, above) in enumerate(zip(draft, target, strict=True)):
            if randomness.passes(above - below, above)[1]:
                return Residual(tokens[place], labels[place], done + place + 1, False, "residual")
        done += count
    return _enumerated(draft_probs, target_probs, groups, randomness, done)


def _enumerated(
    draft_probs: Tensor,
    target_probs: Tensor,
    groups: AcousticGroups,
    randomness: Randomness,
    trials: int,
) -> Residual:
    """The exact residual: a label in proportion to ``(Q_c - P_c)+``, then a member by Q."""
    target = all_coarse_probs(target_probs, groups)
    excess = (target - all_coarse_probs(draft_probs, groups)).clamp(min=0)
    kind = "residual" if float(excess.sum()) > 1e-12 else "fallback"
    label = randomness.categorical(excess if kind == "residual" else target)
    members = groups.members(label)
    mass = target_probs[members] * groups.weights[members]
    return Residual(int(members[randomness.categorical(mass)]), label, trials, True, kind)
