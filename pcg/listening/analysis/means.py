"""Mean scores with intervals that know that votes of one listener, and of one item, hang together.

Two-way cluster-robust variance (Cameron, Gelbach & Miller 2011): listeners + items - cells, each
with the factor G / (G - 1), and Satterthwaite's degrees of freedom. Written through influence
values, so a mean, a difference and a share are one case.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import stats

from pcg.errors import PcgError

Floats = npt.NDArray[np.float64]
Codes = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Estimate:
    """An estimate with its standard error, degrees of freedom and interval; p_value tests `null`
    (two-sided t).
    """

    value: float
    error: float
    df: float
    low: float
    high: float
    p_value: float
    n: int
    listeners: int
    items: int


def codes(values: Sequence[object] | npt.ArrayLike) -> Codes:
    """Labels as 0..G-1."""
    return np.unique(np.asarray(values), return_inverse=True)[1].astype(np.int64)


def cluster_variance(influence: Floats, groups: Codes) -> tuple[float, int]:
    """(variance of `influence.sum()` with sums over `groups` independent, times G / (G - 1); G)."""
    count = len(np.unique(groups))
    if count < 2:
        return 0.0, count
    sums = np.bincount(groups, weights=influence)
    return float(count / (count - 1) * (sums**2).sum()), count


def two_way_variance(influence: Floats, listeners: Codes, items: Codes) -> tuple[float, float]:
    """(variance, degrees of freedom) of `influence.sum()` clustered by listener and item.

    A difference below either one-way variance can only be noise, so the larger of the two is the
    floor.
    """
    cells = codes(listeners * (items.max() + 1) + items)
    by_listener, count_listeners = cluster_variance(influence, listeners)
    by_item, count_items = cluster_variance(influence, items)
    by_cell, _ = cluster_variance(influence, cells)
    if count_listeners < 2 and count_items < 2:
        return by_cell, max(1.0, len(influence) - 1.0)
    if count_listeners < 2:
        return by_item, count_items - 1.0
    if count_items < 2:
        return by_listener, count_listeners - 1.0
    variance = max(by_listener + by_item - by_cell, by_listener, by_item)
    spread = by_listener**2 / (count_listeners - 1) + by_item**2 / (count_items - 1)
    df = variance**2 / spread if spread > 0 else float(min(count_listeners, count_items) - 1)
    return variance, float(np.clip(df, 1.0, max(1, len(influence) - 1)))


def estimate(
    value: float,
    influence: Floats,
    listeners: Codes,
    items: Codes,
    confidence: float = 0.95,
    null: float = 0.0,
) -> Estimate:
    """An interval for `value`, whose sampling error is the sum of `influence` (n,), one for each
    vote that counts.
    """
    variance, df = two_way_variance(influence, listeners, items)
    error = float(np.sqrt(variance))
    half = float(stats.t.ppf(0.5 + confidence / 2, df)) * error
    gap = abs(value - null)
    p_value = float(2 * stats.t.sf(gap / error, df)) if error > 0 else float(gap == 0)
    return Estimate(
        value=float(value),
        error=error,
        df=df,
        low=float(value - half),
        high=float(value + half),
        p_value=p_value,
        n=len(influence),
        listeners=len(np.unique(listeners)),
        items=len(np.unique(items)),
    )


def mean(
    scores: npt.ArrayLike,
    listeners: npt.ArrayLike,
    items: npt.ArrayLike,
    confidence: float = 0.95,
    null: float = 0.0,
) -> Estimate:
    """The mean of `scores` (n,) clustered by `listeners` (n,) and `items` (n,)."""
    values = np.asarray(scores, dtype=np.float64)
    if len(values) == 0:
        raise PcgError("There are no votes to average yet.")
    centre = float(values.mean())
    return estimate(
        centre, (values - centre) / len(values), codes(listeners), codes(items), confidence, null
    )


def system_means(
    scores: npt.ArrayLike,
    systems: npt.ArrayLike,
    listeners: npt.ArrayLike,
    items: npt.ArrayLike,
    confidence: float = 0.95,
) -> dict[str, Estimate]:
    """The mean score of every system."""
    values, names = np.asarray(scores, dtype=np.float64), np.asarray(systems).astype(str)
    who, what = codes(listeners), codes(items)
    found = {}
    for name in np.unique(names):
        mine = names == name
        found[str(name)] = mean(values[mine], who[mine], what[mine], confidence)
    return found


def differences(
    scores: npt.ArrayLike,
    systems: npt.ArrayLike,
    listeners: npt.ArrayLike,
    items: npt.ArrayLike,
    confidence: float = 0.95,
) -> dict[tuple[str, str], Estimate]:
    """The difference of every two systems; listeners and items they share cancel. P-values are
    corrected by Holm's method.
    """
    values, names = np.asarray(scores, dtype=np.float64), np.asarray(systems).astype(str)
    who, what = codes(listeners), codes(items)
    order = [str(name) for name in np.unique(names)]
    centred = np.zeros(len(values))
    means: dict[str, float] = {}
    for name in order:
        mine = names == name
        means[name] = float(values[mine].mean())
        centred[mine] = (values[mine] - means[name]) / mine.sum()
    found = {}
    for place, first in enumerate(order):
        for second in order[place + 1 :]:
            both = (names == first) | (names == second)
            influence = np.where(names[both] == first, 1.0, -1.0) * centred[both]
            gap = means[first] - means[second]
            found[first, second] = estimate(gap, influence, who[both], what[both], confidence)
    return _holm(found)


def _holm(found: Mapping[tuple[str, str], Estimate]) -> dict[tuple[str, str], Estimate]:
    ordered = sorted(found, key=lambda key: found[key].p_value)
    largest, corrected = 0.0, {}
    for place, key in enumerate(ordered):
        largest = max(largest, min(1.0, found[key].p_value * (len(ordered) - place)))
        corrected[key] = largest
    return {
        key: Estimate(**{**vars(value), "p_value": corrected[key]}) for key, value in found.items()
    }
