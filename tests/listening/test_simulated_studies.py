"""A thousand studies by listeners with known preferences: coverage, false alarms, order."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from pcg.listening.analysis import means, pairs, proportions
from pcg.listening.simulate import Crowd, choices, long_form, scores

STUDIES = 1000
MEANS = [3.2, 3.6, 4.0]


def within(share: float, nominal: float, n: int = STUDIES, slack: float = 0.01) -> bool:
    """Whether a share of n fits `nominal`: three binomial standard errors and a little slack."""
    return abs(share - nominal) < 3 * np.sqrt(nominal * (1 - nominal) / n) + slack


@pytest.mark.parametrize(("listeners", "items", "studies"), [(12, 12, STUDIES), (24, 10, 300)])
def test_score_intervals_cover_at_their_nominal_rate(listeners, items, studies):
    rng = np.random.default_rng(11)
    truth = np.mean([scores(MEANS, 1000, 200, Crowd(), rng).mean((0, 1)) for _ in range(4)], axis=0)
    mean_hits, gap_hits, false_alarms = [], [], []
    for _ in range(studies):
        values = long_form(scores(MEANS, listeners, items, Crowd(), rng))
        found = means.system_means(*values)
        mean_hits.append([found[str(k)].low <= truth[k] <= found[str(k)].high for k in range(3)])
        gap = means.differences(*values)["0", "2"]
        gap_hits.append(gap.low <= truth[0] - truth[2] <= gap.high)
        null = long_form(scores([3.5, 3.5], listeners, items, Crowd(), rng))
        false_alarms.append(means.differences(*null)["0", "1"].p_value < 0.05)
    assert within(np.mean(mean_hits), 0.95, studies)
    assert within(np.mean(gap_hits), 0.95, studies)
    assert within(np.mean(false_alarms), 0.05, studies)


def test_ignoring_clusters_would_not_cover():
    """The simulation can tell: a plain t interval on the same votes misses far more often."""
    rng = np.random.default_rng(12)
    truth = scores([3.5], 3000, 300, Crowd(), rng).mean()
    hits = []
    for _ in range(300):
        values = scores([3.5], 12, 12, Crowd(), rng).ravel()
        half = 1.96 * values.std(ddof=1) / np.sqrt(len(values))
        hits.append(abs(values.mean() - truth) < half)
    assert np.mean(hits) < 0.8


@pytest.mark.parametrize("n", [16, 40, 100])
def test_abx_false_alarms_stay_at_alpha(n):
    correct = np.random.default_rng(13).binomial(n, 0.5, STUDIES)
    alarms = np.mean(
        [proportions.exact_share(int(k), n, "greater").p_value <= 0.05 for k in correct]
    )
    attained = float(stats.binom.sf(proportions.critical_count(n) - 1, n, 0.5))
    assert attained <= 0.05
    assert within(float(alarms), attained, slack=0)


def test_abx_power_is_what_was_promised():
    need = proportions.required_votes(0.75)
    correct = np.random.default_rng(14).binomial(need, 0.75, STUDIES)
    power = np.mean(
        [proportions.exact_share(int(k), need, "greater").p_value <= 0.05 for k in correct]
    )
    assert within(float(power), float(proportions.power(need, 0.75)), slack=0)


def test_exact_intervals_cover_at_least_their_rate():
    counts = np.random.default_rng(15).binomial(60, 0.65, STUDIES)
    found = [proportions.exact_share(int(k), 60) for k in counts]
    assert np.mean([row.low <= 0.65 <= row.high for row in found]) > 0.94


def test_clustered_ab_share_covers_when_listeners_differ():
    rng = np.random.default_rng(16)
    hits, plain = [], []
    for _ in range(STUDIES):
        taste = rng.normal(0, 1.0, (20, 1)) + rng.normal(0, 0.5, (1, 12))
        won = (rng.random((20, 12)) < 1 / (1 + np.exp(-taste))).astype(float)
        who, what = np.divmod(np.arange(240), 12)
        found = proportions.clustered_share(won.ravel(), who, what)
        hits.append(found.low <= 0.5 <= found.high)
        exact = proportions.exact_share(int(won.sum()), 240)
        plain.append(exact.low <= 0.5 <= exact.high)
    assert 0.94 < np.mean(hits) < 0.99
    assert np.mean(plain) < 0.9


@pytest.mark.parametrize(
    ("crowd", "studies"), [(Crowd(0, 0, 0.3, 0.3, 0), STUDIES), (Crowd(0, 0, 0.5, 0.1, 0), 200)]
)
def test_bradley_terry_recovers_the_order_and_covers(crowd, studies):
    rng = np.random.default_rng(17)
    names, true = list("abcd"), [1.2, 0.4, -0.4, -1.2]
    wins = sum(choices(true, 600, 600, crowd, rng).mean((0, 1)) for _ in range(2))
    truth = pairs.fit(wins, prior=0)
    ordered, hits = [], []
    for seed in range(studies):
        ranking = pairs.bradley_terry(
            choices(true, 16, 14, crowd, rng), names, seed=seed, draws=120
        )
        ordered.append([row.system for row in ranking.abilities] == names)
        hits.append(
            [row.low <= truth[names.index(row.system)] <= row.high for row in ranking.abilities]
        )
    assert np.mean(ordered) > 0.97
    assert within(float(np.mean(hits)), 0.95, studies, slack=0.02)
