"""Drift of PCG and SSD at equal acceptance, pooled over utterances, with paired intervals."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from pcg.evaluation.rows import Row
    from pcg.evaluation.summary import Results

RESAMPLES = 2_000
Floats = NDArray[np.float64]


def _stack(rows: list[Row], rule: str, name: str) -> Floats:
    return np.asarray([row["drift"][rule][name] for row in rows], dtype=np.float64)


def _means(sums: Floats, positions: Floats, weights: Floats) -> Floats:
    """Weighted pooled means (points,) of sums (utterances, points)."""
    pooled: Floats = (weights @ sums) / (weights @ positions)
    return pooled


def drift_summary(results: Results) -> Row:
    """One point a theta: PCG's acceptance and token drift, and what SSD drifts at that acceptance.

    ``difference`` is PCG's token drift minus SSD's; its interval resamples whole utterances.
    ``ssd_group_drift`` is SSD's drift on groups, which PCG keeps at 0 by construction.
    """
    rows = list(results.arms["drift"].values())
    if not rows:
        return {}
    positions = np.asarray([row["drift"]["positions"] for row in rows], dtype=np.float64)
    pcg = {name: _stack(rows, "pcg", name) for name in ("acceptance", "token_drift")}
    ssd = {name: _stack(rows, "ssd", name) for name in ("acceptance", "token_drift", "group_drift")}

    def curves(weights: Floats) -> tuple[Floats, Floats, Floats, Floats]:
        accepted = _means(pcg["acceptance"], positions, weights)
        line = _means(ssd["acceptance"], positions, weights)
        matched = np.interp(accepted, line, _means(ssd["token_drift"], positions, weights))
        coarse = np.interp(accepted, line, _means(ssd["group_drift"], positions, weights))
        return accepted, _means(pcg["token_drift"], positions, weights), matched, coarse

    accepted, drifted, matched, coarse = curves(np.ones(len(rows)))
    rng = np.random.default_rng(0)
    resampled = []
    for _ in range(RESAMPLES):
        weights = np.bincount(rng.integers(0, len(rows), len(rows)), minlength=len(rows))
        _, own, other, _ = curves(weights.astype(np.float64))
        resampled.append(own - other)
    low, high = np.quantile(np.stack(resampled), [0.025, 0.975], axis=0)
    sd = sum(row["drift"]["sd_acceptance"] for row in rows) / positions.sum()
    first = rows[0]["drift"]
    points = [
        {
            "theta": first["thetas"][i],
            "mean_group_size": first["sizes"][i],
            "acceptance": round(float(accepted[i]), 5),
            "pcg_token_drift": round(float(drifted[i]), 5),
            "ssd_token_drift": round(float(matched[i]), 5),
            "ssd_group_drift": round(float(coarse[i]), 5),
            "difference": round(float(drifted[i] - matched[i]), 5),
            "low": round(float(low[i]), 5),
            "high": round(float(high[i]), 5),
        }
        for i in range(len(first["thetas"]))
    ]
    return {
        "positions": int(positions.sum()),
        "utterances": len(rows),
        "sd_acceptance": round(float(sd), 5),
        "points": points,
    }
