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
from numpy.typing import NDArray
from scipy.sparse import csr_array

Rows = NDArray[np.float64]

THETA_SIZES = (2, 4, 8, 16, 32, 64, 128, 256)
"""Mean group sizes at which the drift of PCG is taken."""
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


def ssd_acceptance(draft: Rows, target: Rows, beta: float) -> Rows:
    """Acceptance (N,) of SSD: sum of min(P, Q + beta P)."""
    return np.asarray(np.minimum(draft, target + beta * draft).sum(axis=1))


def ssd_law(draft: Rows, target: Rows, beta: float) -> Rows:
    """The law (N, V) of the token that one SSD step emits."""
    kept = np.minimum(draft, target + beta * draft)
    excess = np.maximum(target - draft, 0.0)
    mass = excess.sum(axis=1, keepdims=True)
    residual = np.where(mass > 0, excess / np.where(mass > 0, mass, 1.0), target)
    return np.asarray(kept + (1 - kept.sum(axis=1, keepdims=True)) * residual)


def distance(first: Rows, second: Rows) -> Rows:
    """Total variation (N,) between rows of probabilities."""
    return np.asarray(0.5 * np.abs(first - second).sum(axis=1))


def solve_beta(draft: Rows, target: Rows, acceptance: float, steps: int = 40) -> float:
    """The beta in 0..1 at which SSD's mean acceptance equals ``acceptance``."""
    low, high = 0.0, 1.0
    for _ in range(steps):
        beta = (low + high) / 2
        if float(ssd_acceptance(draft, target, beta).mean()) < acceptance:
            low = beta
        else:
            high = beta
    return (low + high) / 2


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


def _curve(name: str, values: Sequence[Rows]) -> dict[str, Any]:
    return {name: [round(float(value.sum()), 6) for value in values]}


def drift_sums(
    draft: NDArray[Any],
    target: NDArray[Any],
    nested: Any,
    sizes: Sequence[float] = THETA_SIZES,
    betas: Sequence[float] = BETAS,
) -> dict[str, Any]:
    """Sums over positions of acceptance and drift, for curves over theta and beta.

    Sums, not means, so that utterances add up. ``pcg``: one entry a mean group size.
    ``ssd``: one entry a beta; its group drift is taken in the groups of the middle size.
    """
    p, q = as_rows(draft, target)
    thetas = [float(nested.calibrate(mean_size=size)) for size in sizes]
    pcg: dict[str, list[float]] = {"acceptance": [], "token_drift": []}
    for theta in thetas:
        matrix = adjacency(nested.at(theta))
        pcg["acceptance"].append(float(overlap(coarse(p, matrix), coarse(q, matrix)).sum()))
        pcg["token_drift"].append(float(distance(pcg_law(p, q, matrix), q).sum()))
    middle = adjacency(nested.at(thetas[len(thetas) // 2]))
    laws = [ssd_law(p, q, beta) for beta in betas]
    ssd = {
        **_curve("acceptance", [ssd_acceptance(p, q, beta) for beta in betas]),
        **_curve("token_drift", [distance(law, q) for law in laws]),
        **_curve("group_drift", [distance(coarse(law, middle), coarse(q, middle)) for law in laws]),
    }
    return {
        "positions": len(p),
        "sd_acceptance": round(float(overlap(p, q).sum()), 6),
        "thetas": [round(theta, 5) for theta in thetas],
        "sizes": list(sizes),
        "betas": list(betas),
        "pcg": {name: [round(value, 6) for value in values] for name, values in pcg.items()},
        "ssd": ssd,
    }
