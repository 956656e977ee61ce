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


NAMES = ("acceptance", "token_drift", "group_drift")


def drift_summary(results: Results) -> Row:
    """One point a theta, PCG beside SSD at the same acceptance.

    ``least`` is the smallest token drift that any rule can have which keeps drafted tokens so
    often: what it accepts beyond SD is mass on tokens the target gives less. ``token`` and
    ``group`` hold PCG's drift minus SSD's with an interval that resamples whole utterances.
    """
    rows = list(results.arms["drift"].values())
    if not rows:
        return {}
    positions = np.asarray([row["drift"]["positions"] for row in rows], dtype=np.float64)
    sums = {
        (rule, name): np.asarray([row["drift"][rule][name] for row in rows], dtype=np.float64)
        for rule in ("pcg", "ssd")
        for name in NAMES
    }
    exact = sum(row["drift"]["sd_acceptance"] for row in rows) / positions.sum()
    mean = {key: value.sum(axis=0) / positions.sum() for key, value in sums.items()}
    token, group = (_differences(sums, positions, name) for name in NAMES[1:])
    first = rows[0]["drift"]
    points = [
        {
            "theta": first["thetas"][i],
            "mean_group_size": first["sizes"][i],
            "ssd_beta": round(float(np.mean([row["drift"]["betas"][i] for row in rows])), 4),
            "least": round(float(mean["pcg", "acceptance"][i] - exact), 5),
            **{f"{rule}_{name}": round(float(value[i]), 5) for (rule, name), value in mean.items()},
            "token": token[i],
            "group": group[i],
        }
        for i in range(len(first["thetas"]))
    ]
    return {
        "positions": int(positions.sum()),
        "utterances": len(rows),
        "sd_acceptance": round(float(exact), 5),
        "points": points,
    }


def _differences(sums: dict[tuple[str, str], Floats], positions: Floats, name: str) -> list[Row]:
    """PCG minus SSD at each theta, with a 95 % interval over resampled utterances."""
    gaps = sums["pcg", name] - sums["ssd", name]
    rng = np.random.default_rng(0)
    chosen = rng.integers(0, len(gaps), (RESAMPLES, len(gaps)))
    resampled = gaps[chosen].sum(axis=1) / positions[chosen].sum(axis=1)[:, None]
    low, high = np.quantile(resampled, [0.025, 0.975], axis=0)
    value = gaps.sum(axis=0) / positions.sum()
    return [
        {"value": round(float(v), 5), "low": round(float(a), 5), "high": round(float(b), 5)}
        for v, a, b in zip(value, low, high, strict=True)
    ]
