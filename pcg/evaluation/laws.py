"""Closed forms over stored probability rows: acceptance and drift of SD, SSD and PCG.

For one judged position with draft row P and target row Q (method: labels are the groups, each
token's mass split equally over the groups that hold it):

- PCG keeps a drafted token t with the mean over its groups k of a_k = min(1, Q_c(k) / P_c(k)), and
  after a rejection emits t with law (Q_c - P_c)_+(k) Q(t | k) summed over k. Its token law is
  therefore P(t) mean_S(t)(a) + Q(t) mean_S(t)(r), r_k = (Q_c - P_c)_+(k) / Q_c(k).
- SSD keeps t with min(1, Q / P + beta), then draws from norm (Q - P)_+.

Drift is the total variation between the emitted law and Q, on tokens or on groups.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import csr_array

from pcg import theory

Rows = NDArray[np.float64]

THETA_SIZES = (2, 4, 8, 16, 32, 64, 128)
"""Mean group sizes at which the drift of PCG is taken."""
BLOCK = 128
"""Positions worked on at once, which bounds memory."""
BETAS = tuple(round(0.05 * i, 2) for i in range(21))


def adjacency(groups: Any) -> csr_array:
    """The symmetric 0/1 membership matrix (V, V) of AcousticGroups."""
    indptr, indices = np.asarray(groups.indptr), np.asarray(groups.indices)
    size = len(indptr) - 1
    return csr_array((np.ones(len(indices)), indices, indptr), shape=(size, size))


def coarse(probs: Rows, matrix: csr_array) -> Rows:
    """Group probabilities (N, V) of token probabilities (N, V)."""
    sizes = np.diff(matrix.indptr)
    return np.asarray((matrix @ (probs / sizes).T).T)


def overlap(draft: Rows, target: Rows) -> Rows:
    """Acceptance of an exact rule, sum of the smaller of both (N,)."""
    return np.asarray(np.minimum(draft, target).sum(axis=1))


def pcg_law(draft: Rows, target: Rows, matrix: csr_array) -> Rows:
    """The law (N, V) of the token that one PCG step emits."""
    sizes = np.diff(matrix.indptr)
    p, q = coarse(draft, matrix), coarse(target, matrix)
    with np.errstate(divide="ignore", invalid="ignore"):
        keep = np.where(p > 0, np.minimum(1.0, q / p), 0.0)
        refill = np.where(q > 0, np.maximum(q - p, 0.0) / q, 0.0)
    kept, refilled = np.asarray((matrix @ keep.T).T), np.asarray((matrix @ refill.T).T)
    law: Rows = (draft * kept + target * refilled) / sizes
    return law


def ssd_law(draft: Rows, target: Rows, beta: float) -> Rows:
    """The law (N, V) of the token that one SSD step emits."""
    return np.asarray(theory.ssd_law(_tensor(draft), _tensor(target), beta))


def ssd_acceptance(draft: Rows, target: Rows, beta: float) -> Rows:
    """Acceptance (N,) of SSD: sum of min(P, Q + beta P)."""
    return np.asarray(np.minimum(draft, target + beta * draft).sum(axis=1))


def _tensor(rows: Rows) -> torch.Tensor:
    return torch.from_numpy(np.ascontiguousarray(rows))


def distance(first: Rows, second: Rows) -> Rows:
    """Total variation (N,) between rows of probabilities."""
    return np.asarray(0.5 * np.abs(first - second).sum(axis=1))


def solve_beta(draft: Rows, target: Rows, acceptance: float) -> float:
    """The beta in 0..1 at which SSD's mean acceptance equals ``acceptance``."""
    return theory.equal_acceptance_beta(_tensor(draft), _tensor(target), acceptance)


def solve_theta(
    draft: Rows, target: Rows, nested: Any, acceptance: float, steps: int = 14
) -> tuple[float, float]:
    """The theta of ``nested`` whose mean PCG acceptance is nearest to ``acceptance``, and it.

    Acceptance falls as theta rises (smaller groups), so bisection between the ends of the grid.
    """
    low, high = float(min(nested.thetas)), float(max(nested.thetas))

    def at(theta: float) -> float:
        matrix = adjacency(nested.at(theta))
        return float(overlap(coarse(draft, matrix), coarse(target, matrix)).mean())

    for _ in range(steps):
        middle = (low + high) / 2
        if at(middle) > acceptance:
            low = middle
        else:
            high = middle
    theta = round((low + high) / 2, 5)
    return theta, at(theta)


def as_rows(draft: NDArray[Any], target: NDArray[Any]) -> tuple[Rows, Rows]:
    """Both row sets in float64, normalised."""
    p, q = np.asarray(draft, dtype=np.float64), np.asarray(target, dtype=np.float64)
    return p / p.sum(axis=1, keepdims=True), q / q.sum(axis=1, keepdims=True)


def reachable(nested: Any, sizes: Sequence[float]) -> list[float]:
    """Those mean group sizes that the stored pairs of ``nested`` reach."""
    largest = float(nested.mean_size(min(nested.thetas)))
    return [size for size in sizes if size <= largest]


DRIFTS = ("acceptance", "token_drift", "group_drift")


def drift_sums(
    draft: NDArray[Any],
    target: NDArray[Any],
    nested: Any,
    sizes: Sequence[float] = THETA_SIZES,
) -> dict[str, Any]:
    """Acceptance and drift of PCG, and of SSD at PCG's acceptance, summed over positions.

    One entry a mean group size. SSD's beta makes both accept equally often on these rows. Group
    drift is that of a label drawn afresh for the emitted token, in the groups of that theta: the
    same question to both. (The label that PCG itself judges by has no drift.) Sums, not means, so
    that utterances add up.
    """
    sizes = reachable(nested, sizes)
    thetas = [float(nested.calibrate(mean_size=size)) for size in sizes]
    matrices = [adjacency(nested.at(theta)) for theta in thetas]
    blocks = [slice(start, start + BLOCK) for start in range(0, len(draft), BLOCK)]
    pcg = np.zeros((3, len(sizes)))
    accepted, exact = np.zeros(len(BETAS)), 0.0
    for block in blocks:
        p, q = as_rows(draft[block], target[block])
        exact += float(overlap(p, q).sum())
        accepted += [float(ssd_acceptance(p, q, beta).sum()) for beta in BETAS]
        pcg += np.stack([_pcg_sums(p, q, matrix) for matrix in matrices], axis=1)
    betas = np.interp(pcg[0], accepted, BETAS)
    ssd = np.zeros((3, len(sizes)))
    for block in blocks:
        p, q = as_rows(draft[block], target[block])
        pairs = zip(betas, matrices, strict=True)
        ssd += np.stack([_ssd_sums(p, q, float(beta), matrix) for beta, matrix in pairs], axis=1)
    return {
        "positions": len(draft),
        "sd_acceptance": round(exact, 6),
        "thetas": [round(theta, 5) for theta in thetas],
        "sizes": list(sizes),
        "betas": betas.round(5).tolist(),
        "pcg": {name: row.round(6).tolist() for name, row in zip(DRIFTS, pcg, strict=True)},
        "ssd": {name: row.round(6).tolist() for name, row in zip(DRIFTS, ssd, strict=True)},
    }


def _pcg_sums(draft: Rows, target: Rows, matrix: csr_array) -> Rows:
    """Acceptance, token drift and group drift of PCG, summed over positions (3,)."""
    on_groups = coarse(target, matrix)
    accepted = overlap(coarse(draft, matrix), on_groups).sum()
    law = pcg_law(draft, target, matrix)
    relabelled = distance(coarse(law, matrix), on_groups).sum()
    return np.asarray([accepted, distance(law, target).sum(), relabelled])


def _ssd_sums(draft: Rows, target: Rows, beta: float, matrix: csr_array) -> Rows:
    """Acceptance, token drift and group drift of SSD, summed over positions (3,)."""
    law = ssd_law(draft, target, beta)
    relabelled = distance(coarse(law, matrix), coarse(target, matrix)).sum()
    accepted = ssd_acceptance(draft, target, beta).sum()
    return np.asarray([accepted, distance(law, target).sum(), relabelled])
