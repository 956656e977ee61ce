"""AB and ABX: exact binomial tests, intervals that know clusters, votes a result needs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt
from scipy import stats

from pcg.errors import PcgError
from pcg.listening.analysis.means import codes, two_way_variance

MAX_VOTES = 20_000
Alternative = Literal["two-sided", "greater"]


@dataclass(frozen=True)
class Share:
    """`successes` of `n`: the share, its exact interval, and the exact p-value against one half."""

    successes: float
    n: int
    share: float
    low: float
    high: float
    p_value: float
    alternative: str


def exact_share(
    successes: float, n: int, alternative: Alternative = "two-sided", confidence: float = 0.95
) -> Share:
    """Exact binomial test of `successes` in `n` against 1/2 and the two-sided Clopper-Pearson
    interval.
    """
    if n <= 0 or not 0 <= successes <= n:
        raise PcgError("There are no votes to test yet.")
    whole = int(successes)
    p_value = float(stats.binomtest(whole, n, 0.5, alternative=alternative).pvalue)
    tail = (1 - confidence) / 2
    low = 0.0 if whole == 0 else float(stats.beta.ppf(tail, whole, n - whole + 1))
    high = 1.0 if whole == n else float(stats.beta.ppf(1 - tail, whole + 1, n - whole))
    return Share(successes, n, whole / n, low, high, p_value, alternative)


@dataclass(frozen=True)
class ClusteredShare:
    """A share whose votes hang together: as `Share`, with the number of independent votes that tell
    as much (`effective`)."""

    share: float
    n: int
    effective: float
    low: float
    high: float
    p_value: float
    alternative: str


def clustered_share(
    values: npt.ArrayLike,
    listeners: npt.ArrayLike,
    items: npt.ArrayLike,
    alternative: Alternative = "two-sided",
    confidence: float = 0.95,
) -> ClusteredShare:
    """The share of `values` (n,) in 0..1 (a tie is 0.5), with votes clustered by listener and item.

    Clopper-Pearson with n divided by the design effect and by Student's factor (Korn & Graubard
    1998); a design effect below 1 is taken as 1, so this never claims more than the exact test.
    """
    votes = np.asarray(values, dtype=np.float64)
    n = len(votes)
    if n == 0:
        raise PcgError("There are no votes to test yet.")
    share = float(votes.mean())
    variance, df = two_way_variance((votes - share) / n, codes(listeners), codes(items))
    plain = share * (1 - share) / n
    effect = max(1.0, variance / plain) if plain > 0 else 1.0
    tail = (1 - confidence) / 2
    student = 1.0
    if effect > 1 and n > 1:
        student = float(stats.t.isf(tail, n - 1) / stats.t.isf(tail, df)) ** 2
    effective = n / effect * min(1.0, student)
    won, lost = share * effective, (1 - share) * effective
    low = 0.0 if won == 0 else float(stats.beta.ppf(tail, won, lost + 1))
    high = 1.0 if lost == 0 else float(stats.beta.isf(tail, won + 1, lost))
    more = 1.0 if won == 0 else float(stats.beta.cdf(0.5, won, lost + 1))
    fewer = 1.0 if lost == 0 else float(stats.beta.sf(0.5, won + 1, lost))
    p_value = more if alternative == "greater" else min(1.0, 2 * min(more, fewer))
    return ClusteredShare(share, n, effective, low, high, p_value, alternative)


def critical_count(
    n: npt.ArrayLike, alpha: float = 0.05, alternative: Alternative = "greater"
) -> npt.NDArray[np.int64]:
    """The smallest count of `n` that the exact test at `alpha` calls more than one half; n + 1
    where none does.
    """
    votes = np.asarray(n, dtype=np.int64)
    tail = alpha if alternative == "greater" else alpha / 2
    count = np.asarray(stats.binom.isf(tail, votes, 0.5), dtype=np.int64) + 1
    count = np.where(stats.binom.sf(count - 2, votes, 0.5) <= tail, count - 1, count)
    return np.where(stats.binom.sf(count - 1, votes, 0.5) <= tail, count, votes + 1)


def power(
    n: npt.ArrayLike, share: float, alpha: float = 0.05, alternative: Alternative = "greater"
) -> npt.NDArray[np.float64]:
    """The chance that the exact test on `n` votes rejects one half at the true `share`."""
    votes = np.asarray(n, dtype=np.int64)
    count = critical_count(votes, alpha, alternative)
    found = stats.binom.sf(count - 1, votes, share)
    if alternative == "two-sided":
        found = found + stats.binom.cdf(votes - count, votes, share)
    return np.asarray(np.where(count > votes, 0.0, found), dtype=np.float64)


def required_votes(
    share: float, alpha: float = 0.05, wanted: float = 0.8, alternative: Alternative = "greater"
) -> int:
    """The number of votes from which on the exact test always has at least the `wanted` power.

    Power of an exact test saws up and down with n; the answer holds for every larger n too (up to
    20,000).
    """
    if not 0 < share < 1 or abs(share - 0.5) < 0.005:
        raise PcgError("Name the share to detect: between 0 and 1, and not one half.")
    if alternative == "greater" and share < 0.5:
        raise PcgError("A one-sided test detects shares above one half.")
    votes = np.arange(1, MAX_VOTES + 1)
    weak = np.flatnonzero(power(votes, share, alpha, alternative) < wanted)
    if len(weak) and weak[-1] == MAX_VOTES - 1:
        raise PcgError(f"More than {MAX_VOTES:,} votes are needed: look for a larger difference.")
    return int(votes[weak[-1]] + 1) if len(weak) else 1
