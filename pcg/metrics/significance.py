"""Is a difference between two systems real? Paired bootstrap and permutation over utterances.

A corpus rate is a ratio of sums (errors over words, tokens over seconds), so every system is a
pair of arrays, ``parts`` and ``wholes``, one entry an utterance; a plain mean has wholes of 1.
Utterances are resampled whole and both systems together (Bisani and Ney, 2004). Seeded.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pcg.errors import PcgError

RESAMPLES = 10_000
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Interval:
    """A rate with its percentile bootstrap interval."""

    value: float
    low: float
    high: float
    n: int
    level: float = 0.95

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {name: _round(item) for name, item in asdict(self).items()}


@dataclass(frozen=True)
class Comparison:
    """``second - first`` of two rates over the same utterances.

    ``low``, ``high``: paired bootstrap interval. ``p_value``: two-sided paired permutation test
    (systems exchanged within an utterance), never 0: at least 1 / (resamples + 1).
    """

    first: float
    second: float
    difference: float
    low: float
    high: float
    p_value: float
    n: int
    resamples: int
    seed: int

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {name: _round(item) for name, item in asdict(self).items()}


def _round(item: Any) -> Any:
    return round(item, 6) if isinstance(item, float) else item


def _arrays(parts: Sequence[float], wholes: Sequence[float] | None) -> tuple[Floats, Floats]:
    top = np.asarray(parts, dtype=np.float64)
    bottom = np.ones_like(top) if wholes is None else np.asarray(wholes, dtype=np.float64)
    if top.ndim != 1 or top.size == 0 or top.shape != bottom.shape:
        raise PcgError("A rate needs one part and one whole for each of at least one utterance.")
    if not (np.isfinite(top).all() and np.isfinite(bottom).all() and (bottom > 0).all()):
        raise PcgError("A rate needs finite parts and wholes above zero.")
    return top, bottom


@lru_cache(maxsize=4)
def _resamples(n: int, resamples: int, seed: int) -> Floats:
    """How often each of ``n`` utterances is drawn in each resample (resamples, n)."""
    chosen = np.random.default_rng(seed).integers(0, n, (resamples, n))
    flat = (chosen + np.arange(resamples)[:, None] * n).reshape(-1)
    counts = np.bincount(flat, minlength=resamples * n)
    return counts.reshape(resamples, n).astype(np.float64)


@lru_cache(maxsize=4)
def _exchanges(n: int, resamples: int, seed: int) -> Floats:
    """1 where the systems of an utterance are exchanged (resamples, n)."""
    return np.random.default_rng([seed, 1]).integers(0, 2, (resamples, n)).astype(np.float64)


def interval(
    parts: Sequence[float],
    wholes: Sequence[float] | None = None,
    *,
    resamples: int = RESAMPLES,
    seed: int = 0,
    level: float = 0.95,
) -> Interval:
    """The rate sum(parts) / sum(wholes) with its percentile bootstrap interval."""
    top, bottom = _arrays(parts, wholes)
    drawn = _resamples(top.size, resamples, seed)
    low, high = np.quantile((drawn @ top) / (drawn @ bottom), [(1 - level) / 2, (1 + level) / 2])
    return Interval(float(top.sum() / bottom.sum()), float(low), float(high), top.size, level)


def compare(
    first: Sequence[float],
    second: Sequence[float],
    first_wholes: Sequence[float] | None = None,
    second_wholes: Sequence[float] | None = None,
    *,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Comparison:
    """Compare two systems on the same utterances, in the same order: ``second - first``.

    Raises PcgError when the numbers of utterances differ.
    """
    a, a_whole = _arrays(first, first_wholes)
    b, b_whole = _arrays(second, second_wholes)
    if a.size != b.size:
        raise PcgError("A paired comparison needs the same utterances of both systems.")
    rates = float(a.sum() / a_whole.sum()), float(b.sum() / b_whole.sum())
    difference = rates[1] - rates[0]
    drawn = _resamples(a.size, resamples, seed)
    boots = (drawn @ b) / (drawn @ b_whole) - (drawn @ a) / (drawn @ a_whole)
    low, high = np.quantile(boots, [0.025, 0.975])
    swap = _exchanges(a.size, resamples, seed)
    moved, moved_whole = swap @ (a - b), swap @ (a_whole - b_whole)
    shuffled = (b.sum() + moved) / (b_whole.sum() + moved_whole)
    shuffled -= (a.sum() - moved) / (a_whole.sum() - moved_whole)
    extreme = int((np.abs(shuffled) >= abs(difference) - 1e-12).sum())
    return Comparison(
        *rates,
        difference=difference,
        low=float(low),
        high=float(high),
        p_value=(extreme + 1) / (resamples + 1),
        n=a.size,
        resamples=resamples,
        seed=seed,
    )


def ratio(
    first: Sequence[float],
    second: Sequence[float],
    first_wholes: Sequence[float],
    second_wholes: Sequence[float],
    *,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Interval:
    """first rate / second rate over the same utterances, with its paired bootstrap interval.

    With seconds over tokens this is how many times faster the second system is.
    """
    a, a_whole = _arrays(first, first_wholes)
    b, b_whole = _arrays(second, second_wholes)
    if a.size != b.size:
        raise PcgError("A paired comparison needs the same utterances of both systems.")
    drawn = _resamples(a.size, resamples, seed)
    rate_a, rate_b = (drawn @ a) / (drawn @ a_whole), (drawn @ b) / (drawn @ b_whole)
    low, high = np.quantile(rate_a / rate_b, [0.025, 0.975])
    value = float(a.sum() / a_whole.sum() / (b.sum() / b_whole.sum()))
    return Interval(value, float(low), float(high), a.size)
