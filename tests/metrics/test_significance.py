"""Intervals cover, permutation p-values are uniform under no difference and small under one."""

from __future__ import annotations

import numpy as np
import pytest

from pcg.errors import PcgError
from pcg.metrics.significance import compare, interval, ratio


def test_interval_is_seeded_and_holds_the_rate() -> None:
    rng = np.random.default_rng(0)
    errors, words = rng.integers(0, 5, 60), rng.integers(8, 15, 60)
    first = interval(errors, words)
    assert first == interval(errors, words)
    assert first.low < first.value < first.high
    assert first.value == pytest.approx(errors.sum() / words.sum())


def test_interval_covers_about_nineteen_times_in_twenty() -> None:
    rng = np.random.default_rng(1)
    inside = 0
    for trial in range(200):
        sample = interval(rng.normal(3, 1, 50), resamples=400, seed=trial)
        inside += sample.low <= 3 <= sample.high
    assert 0.88 <= inside / 200 <= 0.99


def test_permutation_is_uniform_without_a_difference() -> None:
    rng = np.random.default_rng(2)
    values = [
        compare(
            rng.poisson(1, 40), rng.poisson(1, 40), np.full(40, 10), np.full(40, 10), resamples=300
        ).p_value
        for _ in range(200)
    ]
    assert 0.01 <= np.mean(np.asarray(values) <= 0.05) <= 0.11
    assert 0.4 <= np.mean(values) <= 0.62


def test_a_real_difference_is_found_by_pairing() -> None:
    rng = np.random.default_rng(3)
    hard = rng.normal(0, 10, 40)
    outcome = compare(hard, hard + rng.normal(0.5, 0.5, 40))
    assert outcome.p_value < 0.001 and 0 < outcome.low < outcome.difference < outcome.high
    assert outcome.difference == pytest.approx(outcome.second - outcome.first)


def test_equal_systems_have_p_one() -> None:
    assert compare([1, 0, 2], [1, 0, 2]).p_value == 1.0


def test_ratio_is_how_many_times_faster() -> None:
    outcome = ratio([2, 4, 6], [1, 2, 3], [1, 1, 1], [1, 1, 1])
    assert (outcome.value, outcome.low, outcome.high) == pytest.approx((2, 2, 2))


@pytest.mark.parametrize("bad", [([], []), ([1], [0]), ([float("nan")], [1])])
def test_unusable_numbers_are_refused(bad: tuple[list[float], list[float]]) -> None:
    with pytest.raises(PcgError):
        interval(*bad)
    with pytest.raises(PcgError):
        compare([1, 2], [1])
