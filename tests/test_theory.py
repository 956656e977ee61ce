"""Closed forms: expected tokens and speed, acceptance over theta, drift."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from pcg import theory
from pcg.coarse import group_alpha
from pcg.errors import PcgError
from pcg.groups import NestedGroups
from tests.acceptance.cases import cases
from tests.test_decoding import speak


def rows(seed: int, count: int = 6, size: int = 20) -> tuple[Tensor, Tensor]:
    maker = torch.Generator().manual_seed(seed)
    both = (2 * torch.randn(2, count, size, generator=maker)).softmax(-1)
    return both[0], both[1]


def test_expected_tokens() -> None:
    assert theory.expected_tokens(0.0, 3) == 1.0
    assert theory.expected_tokens(1.0, 3) == 4.0
    assert theory.expected_tokens(0.6, 3) == pytest.approx((1 - 0.6**4) / 0.4)
    assert theory.expected_tokens(0.5, 0) == 1.0
    for alpha, lookahead in ((-0.1, 3), (1.1, 3), (0.5, -1), (float("nan"), 3)):
        with pytest.raises(PcgError, match="Acceptance"):
            theory.expected_tokens(alpha, lookahead)


def test_expected_speed_meets_the_published_shape() -> None:
    """At lookahead 3 and c = 0.186 (method): 0.98x is alpha 0.36, 1.4x is 0.60, at most 2.57x."""
    for alpha, speed in ((0.36, 0.98), (0.60, 1.40), (1.0, 2.57)):
        found = theory.expected_speedup(alpha, 3, c=0.186, v=1.0)
        assert found == pytest.approx(speed, abs=0.02)
    with pytest.raises(PcgError, match="cost ratios"):
        theory.expected_speedup(0.5, 3, c=-0.1, v=1.0)
    with pytest.raises(PcgError, match="cost ratios"):
        theory.expected_speedup(0.5, 3, c=0.1, v=0.0)


def test_acceptance_at_every_theta_from_one_run() -> None:
    """The sum over min(P_c, Q_c) of groups built for each theta, and a run's own count."""
    table = torch.randn(18, 3, generator=torch.Generator().manual_seed(2))
    nested = NestedGroups.from_table(table, 0.0, 20)
    draft, target = rows(1)
    thetas = [0.0, 0.3, 0.6, 0.9, 1.0]
    found = theory.alpha_over_thetas(draft, target, nested, thetas)
    for theta, alpha in zip(thetas, found, strict=True):
        assert alpha == pytest.approx(float(group_alpha(draft, target, nested.at(theta)).mean()))
    assert found[-1] == pytest.approx(theory.sd_alpha(draft, target)), "theta 1 is SD"
    assert all(alpha >= found[-1] - 1e-9 for alpha in found)


def test_a_runs_acceptance_meets_its_own_rows() -> None:
    """The mean of alpha over judged positions is what a long run accepts."""
    judged, accepted, alpha = 0, 0, 0.0
    for seed in range(60):
        for one in speak("sd", seed, 30, keep_rows=True):
            assert one.rows is not None
            count = len(one.verdict.judgements)
            judged += count
            accepted += one.verdict.accepted
            alpha += float(torch.minimum(one.rows[0][:count], one.rows[1][:count]).sum())
    assert judged > 1000
    assert accepted / judged == pytest.approx(alpha / judged, abs=0.05)


def test_rows_must_have_been_kept() -> None:
    with pytest.raises(PcgError, match="kept no probability rows"):
        theory.stack_rows(list(speak("sd")))
    draft, target = theory.stack_rows(list(speak("sd", keep_rows=True)))
    assert draft.shape == target.shape


def test_laws_sum_to_one_and_drift_is_bounded() -> None:
    for case in cases(104, seed=3):
        grouped = theory.grouped_law(case.draft, case.target, case.groups)
        biased = theory.ssd_law(case.draft, case.target, 0.4)
        for law in (grouped, biased):
            assert float(law.sum()) == pytest.approx(1.0)
            assert float(law.min()) >= -1e-12
            assert -1e-12 <= float(theory.drift(law, case.target)) <= 1 + 1e-12
        exact = theory.ssd_law(case.draft, case.target, 0.0)
        assert float(theory.drift(exact, case.target)) == pytest.approx(0.0, abs=1e-9)


@given(st.integers(0, 1000), st.floats(0.05, 1.0))
@settings(max_examples=30, deadline=None)
def test_beta_for_an_acceptance(seed: int, share: float) -> None:
    draft, target = rows(seed)
    low = theory.sd_alpha(draft, target)
    wanted = low + share * (1 - low)
    beta = theory.equal_acceptance_beta(draft, target, wanted)
    assert theory.ssd_alpha(draft, target, beta) == pytest.approx(wanted, abs=1e-6)
    assert theory.equal_acceptance_beta(draft, target, low - 0.01) == 0.0
