"""The analysis agrees with scipy and statsmodels where they have the same test."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from pcg.errors import PcgError
from pcg.listening.analysis import means, pairs, proportions
from pcg.listening.simulate import Crowd, choices, long_form, scores

sm = pytest.importorskip("statsmodels.api")


def long_scores(seed=0, drop=0.2):
    rng = np.random.default_rng(seed)
    values, systems, who, what = long_form(scores([3.0, 3.5, 4.0], 9, 11, Crowd(), rng))
    kept = rng.random(len(values)) > drop
    return values[kept], systems[kept], who[kept], what[kept]


def test_clustered_error_of_a_mean_equals_statsmodels():
    values, systems, who, what = long_scores()
    one = systems == 1
    mine = means.mean(values[one], who[one], what[one])
    groups = np.stack([who[one], what[one]], axis=1)
    fit = sm.OLS(values[one], np.ones(one.sum())).fit(
        cov_type="cluster", cov_kwds={"groups": groups}
    )
    assert mine.value == pytest.approx(fit.params[0])
    assert mine.error == pytest.approx(fit.bse[0], rel=1e-9)


def test_one_way_error_equals_statsmodels():
    values, systems, who, _ = long_scores(1)
    one = systems == 0
    centred = (values[one] - values[one].mean()) / one.sum()
    variance, count = means.cluster_variance(centred, who[one])
    fit = sm.OLS(values[one], np.ones(one.sum())).fit(
        cov_type="cluster", cov_kwds={"groups": who[one]}
    )
    assert count == 9 and np.sqrt(variance) == pytest.approx(fit.bse[0], rel=1e-9)


def test_difference_equals_a_regression_with_two_way_clusters():
    crowd = Crowd(0.3, 0.3, 1.0, 1.0, 0.2)  # strong clusters, so the floor of the variance is idle
    flat = long_form(scores([3.0, 3.5, 4.0], 9, 11, crowd, np.random.default_rng(2), rounded=False))
    values, systems, who, what = flat
    found = means.differences(values, systems, who, what)["0", "1"]
    both = systems != 2
    design = sm.add_constant((systems[both] == 0).astype(float))
    groups = np.stack([who[both], what[both]], axis=1)
    fit = sm.OLS(values[both], design).fit(cov_type="cluster", cov_kwds={"groups": groups})
    assert found.value == pytest.approx(fit.params[1])
    assert found.error == pytest.approx(fit.bse[1], rel=0.01)  # they also apply (n - 1) / (n - 2)


def test_a_balanced_paired_difference_is_the_paired_t_test():
    rng = np.random.default_rng(3)
    values = scores([3.0, 3.4], 30, 1, Crowd(), rng)
    flat, systems, who, what = long_form(values)
    found = means.differences(flat, systems, who, what)["0", "1"]
    other = stats.ttest_rel(values[:, 0, 0], values[:, 0, 1])
    assert found.p_value == pytest.approx(other.pvalue, rel=1e-9)


def test_holm_equals_statsmodels():
    from statsmodels.stats.multitest import multipletests

    values, systems, who, what = long_scores(4)
    raw = []
    for first, second in ((0, 1), (0, 2), (1, 2)):
        both = (systems == first) | (systems == second)
        raw.append(
            means.differences(values[both], systems[both], who[both], what[both])[
                str(first), str(second)
            ].p_value
        )
    found = means.differences(values, systems, who, what)
    expected = multipletests(raw, method="holm")[1]
    assert [found[key].p_value for key in (("0", "1"), ("0", "2"), ("1", "2"))] == pytest.approx(
        list(expected)
    )


@pytest.mark.parametrize(("count", "n"), [(0, 10), (7, 10), (16, 16), (53, 90), (300, 550)])
@pytest.mark.parametrize("alternative", ["two-sided", "greater"])
def test_exact_share_equals_scipy_and_statsmodels(count, n, alternative):
    from statsmodels.stats.proportion import binom_test, proportion_confint

    found = proportions.exact_share(count, n, alternative)
    test = stats.binomtest(count, n, 0.5, alternative=alternative)
    exact = stats.binomtest(count, n, 0.5).proportion_ci(0.95, "exact")
    other = {"two-sided": "two-sided", "greater": "larger"}[alternative]
    assert found.p_value == pytest.approx(test.pvalue, rel=1e-12)
    assert found.p_value == pytest.approx(float(binom_test(count, n, 0.5, other)), rel=1e-9)
    assert (found.low, found.high) == pytest.approx((exact.low, exact.high), abs=1e-9)
    assert (found.low, found.high) == pytest.approx(
        proportion_confint(count, n, method="beta"), abs=1e-9
    )


def test_independent_votes_make_the_clustered_share_the_exact_one():
    for won, alternative in ((0, "greater"), (9, "greater"), (9, "two-sided"), (6, "two-sided")):
        values = np.arange(9) < won
        exact = proportions.exact_share(won, 9, alternative)
        found = proportions.clustered_share(values, range(9), [0] * 9, alternative)
        assert found.n == 9 and found.effective <= 9
        assert found.low <= exact.low + 1e-9 and found.high >= exact.high - 1e-9
        assert found.p_value >= exact.p_value - 1e-9
        if won in (0, 9):
            assert (found.low, found.high) == pytest.approx((exact.low, exact.high))
            assert found.p_value == pytest.approx(exact.p_value)


def test_copied_votes_do_not_count_as_new_ones():
    once = proportions.clustered_share([1, 1, 1, 0, 1, 0, 1, 1], range(8), range(8))
    values = np.repeat([1, 1, 1, 0, 1, 0, 1, 1], 10)
    often = proportions.clustered_share(values, np.repeat(range(8), 10), np.tile(range(10), 8))
    assert often.effective < 10 and often.p_value > 0.1
    assert once.share == often.share


@pytest.mark.parametrize("alternative", ["two-sided", "greater"])
def test_critical_counts_and_power_equal_brute_force(alternative):
    for n in (3, 5, 6, 16, 25, 61):
        rejected = [
            k
            for k in range(n + 1)
            if stats.binomtest(k, n, 0.5, alternative=alternative).pvalue <= 0.05
        ]
        high = [k for k in rejected if k > n / 2]
        assert proportions.critical_count(n, 0.05, alternative) == (min(high) if high else n + 1)
        brute = stats.binom.pmf(rejected, n, 0.7).sum() if rejected else 0.0
        assert proportions.power(n, 0.7, 0.05, alternative) == pytest.approx(brute, abs=1e-9)


def test_required_votes_is_enough_from_there_on():
    for share in (0.6, 0.75, 0.9):
        need = proportions.required_votes(share)
        assert (proportions.power(np.arange(need, need + 300), share) >= 0.8).all()
        assert proportions.power(need - 1, share) < 0.8
    assert proportions.critical_count(16) == 12
    with pytest.raises(PcgError):
        proportions.required_votes(0.5)


def test_bradley_terry_equals_logistic_regression():
    rng = np.random.default_rng(5)
    total = choices([0.8, 0.1, -0.3, -0.6], 6, 8, Crowd(0, 0, 0, 0, 0), rng).sum((0, 1))
    design, won = [], []
    for first in range(4):
        for second in range(4):
            if first != second:
                row = np.zeros(4)
                row[first], row[second] = 1, -1
                design += [row] * int(total[first, second])
                won += [1] * int(total[first, second])
    flipped = [-row for row in design]
    fit = sm.GLM(
        [*won, *([0] * len(won))], np.array(design + flipped)[:, 1:], family=sm.families.Binomial()
    ).fit()
    expected = np.concatenate([[0], fit.params])
    assert pairs.fit(total, prior=0) == pytest.approx(expected - expected.mean(), abs=1e-6)


def test_bradley_terry_in_closed_form_for_two_systems():
    assert pairs.fit([[0, 30], [10, 0]], prior=0) == pytest.approx(
        np.array([1, -1]) * np.log(3) / 2
    )


def test_a_system_that_always_wins_stays_finite_and_islands_are_refused():
    tensor = np.zeros((3, 3, 2, 2))
    tensor[..., 0, 1] = 1
    ranking = pairs.bradley_terry(tensor, ["x", "y"])
    assert ranking.abilities[0].system == "x" and np.isfinite(ranking.abilities[0].ability)
    islands = np.zeros((2, 2, 4, 4))
    islands[..., 0, 1] = islands[..., 2, 3] = 1
    with pytest.raises(PcgError, match="joins"):
        pairs.bradley_terry(islands, list("abcd"))


def test_the_bootstrap_is_seeded():
    tensor = choices([0.5, 0, -0.5], 6, 6, Crowd(), np.random.default_rng(0))
    first, second, third = (
        pairs.bradley_terry(tensor, list("abc"), seed=seed) for seed in (1, 1, 2)
    )
    assert first == second and first != third


def test_single_listener_or_item_still_gives_an_interval():
    values = np.array([3.0, 4, 3.5, 5])
    assert means.mean(values, [0] * 4, range(4)).error == pytest.approx(values.std(ddof=1) / 2)
    assert means.mean(values, range(4), [0] * 4).error == pytest.approx(values.std(ddof=1) / 2)
    assert np.isfinite(means.mean([4.0], [0], [0]).high)
