"""Coarse probabilities and the residual by thinning, enumerated and drawn."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from pcg.coarse import (
    Residual,
    all_coarse_probs,
    coarse_pairs,
    coarse_probs,
    draw_labels,
    group_alpha,
    thin,
    token_alpha,
)
from pcg.groups import AcousticGroups
from pcg.randomness import Randomness
from tests.acceptance.branches import as_row, law_of, visit
from tests.acceptance.cases import Case, cases

EXACT = 1e-9
SMALL = [case for case in cases(240, largest=5, seed=5) if case.groups.indices.numel() <= 12]


def residual_law(case: Case) -> tuple[torch.Tensor, float]:
    """((Q_c - P_c)+ / Z, Z) straight from the definition, on a dense membership matrix."""
    member = torch.zeros(case.size, case.size, dtype=torch.float64)
    member[case.groups.rows, case.groups.indices.long()] = 1.0
    shares = member / member.sum(0)
    excess = (shares @ case.target - shares @ case.draft).clamp(min=0)
    return excess / excess.sum().clamp(min=1e-300), float(excess.sum())


@pytest.mark.parametrize("case", cases(24), ids=lambda case: case.name)
def test_every_form_of_the_coarse_row_agrees(case: Case) -> None:
    groups = case.groups
    both = torch.stack([case.draft, case.target])
    every = all_coarse_probs(both, groups)
    assert torch.allclose(every.sum(-1), torch.ones(2, dtype=torch.float64), atol=1e-12)
    ids = list(range(case.size))
    assert torch.allclose(coarse_probs(both, groups, torch.tensor(ids)), every, atol=1e-15)
    rows = both[:, None].expand(2, case.size, case.size)
    pairs = torch.tensor(coarse_pairs(*rows, groups, ids), dtype=torch.float64)
    assert torch.allclose(pairs, every, atol=1e-15)
    alone = torch.tensor(coarse_pairs(*both, groups, ids), dtype=torch.float64)
    assert torch.allclose(alone, every, atol=1e-15)
    assert coarse_probs(case.draft, groups, torch.tensor([0, 0])).shape == (2,)


@pytest.mark.parametrize("case", cases(40), ids=lambda case: case.name)
def test_labels_follow_the_coarse_row(case: Case) -> None:
    def label(choices: Randomness) -> int:
        return draw_labels([choices.categorical(case.draft)], case.groups, choices)[0]

    law = as_row(law_of(label), case.size)
    assert float((law - all_coarse_probs(case.draft, case.groups)).abs().max()) < EXACT


@pytest.mark.parametrize("trials", [0, 1, 2])
def test_thinning_has_the_residuals_law(trials: int) -> None:
    """Whatever the cap, labels follow (Q_c - P_c)+ / Z, and a token its label's share of Q."""
    seen = 0
    for case in SMALL if trials < 2 else SMALL[::6]:
        wanted, mass = residual_law(case)
        if mass < 1e-12:
            continue
        seen += 1

        def run(choices: Randomness, case: Case = case) -> tuple[int, int]:
            left = thin(case.draft, case.target, case.groups, choices, trials, 1)
            return left.group, left.token

        law = law_of(run)
        labels = {k: sum(p for (g, _), p in law.items() if g == k) for k in range(case.size)}
        assert float((as_row(labels, case.size) - wanted).abs().max()) < EXACT, case.name
        coarse = all_coarse_probs(case.target, case.groups)
        for (k, t), probability in law.items():
            share = case.target[t] * case.groups.weights[t] / coarse[k]
            assert probability == pytest.approx(float(wanted[k] * share), abs=EXACT), case.name
    assert seen > 15


def test_trials_are_geometric_with_the_residuals_mass() -> None:
    """The j-th trial is the first to pass with (1 - Z)^(j - 1) Z, so the mean is 1 / Z."""
    for case in [one for one in SMALL if len(one.groups.indices) <= 7][::2]:
        _, mass = residual_law(case)
        law = law_of(lambda choices, case=case: _count(case, choices, 2))
        assert law.get(1, 0.0) == pytest.approx(mass, abs=EXACT), case.name
        assert law.get(2, 0.0) == pytest.approx(mass * (1 - mass), abs=EXACT), case.name
        assert law.get(None, 0.0) == pytest.approx((1 - mass) ** 2, abs=EXACT), case.name


def _count(case: Case, choices: Randomness, cap: int) -> int | None:
    left = thin(case.draft, case.target, case.groups, choices, cap, 1)
    return None if left.exact else left.trials


def test_a_residual_without_mass_falls_back_to_the_target() -> None:
    groups = AcousticGroups.from_sets([[0, 1], [1], [2]])
    row = torch.tensor([0.25, 0.25, 0.5], dtype=torch.float64)
    found: list[tuple[float, Residual]] = list(
        visit(lambda choices: thin(row, row, groups, choices, 1, 1))
    )
    assert {left.kind for _, left in found} == {"fallback"}
    tokens = [0.0] * 3
    for probability, left in found:
        tokens[left.token] += probability
    assert tokens == pytest.approx(row.tolist())


def test_drawn_labels_and_trials_fit_their_laws() -> None:
    """Chi-squared on draws from a real generator, batches and all."""
    case = next(one for one in cases(96, seed=9) if one.name.endswith("full-9"))
    wanted, mass = residual_law(case)
    choices = Randomness(torch.Generator().manual_seed(4))
    rows = case.draft.float(), case.target.float()
    found = [thin(*rows, case.groups, choices) for _ in range(4000)]
    labels = torch.bincount(torch.tensor([one.group for one in found]), minlength=case.size)
    kept = wanted > 0
    assert int(labels[~kept].sum()) == 0
    assert stats.chisquare(labels[kept], 4000 * wanted[kept]).pvalue > 1e-4
    trials = torch.tensor([one.trials for one in found])
    expected = [4000 * mass * (1 - mass) ** j for j in range(4)]
    counts = [int((trials == j + 1).sum()) for j in range(4)]
    last = 4000 - sum(counts)
    assert stats.chisquare([*counts, last], [*expected, 4000 - sum(expected)]).pvalue > 1e-4
    assert not any(one.exact for one in found)


@given(st.integers(0, 10_000))
@settings(max_examples=60, deadline=None)
def test_grouping_never_lowers_acceptance(seed: int) -> None:
    for case in cases(8, seed=seed):
        alone, grouped = (
            token_alpha(case.draft, case.target),
            group_alpha(case.draft, case.target, case.groups),
        )
        assert float(grouped) >= float(alone) - 1e-12
        single = AcousticGroups.singletons(case.size)
        assert float(group_alpha(case.draft, case.target, single)) == pytest.approx(float(alone))


@given(st.integers(0, 10_000))
@settings(max_examples=40, deadline=None)
def test_renaming_the_ids_renames_the_result(seed: int) -> None:
    case = cases(1, seed=seed)[0]
    renamed = torch.randperm(case.size, generator=torch.Generator().manual_seed(seed))
    back = renamed.argsort()  # the new id of each old one
    sets = [back[case.groups.members(int(old))].tolist() for old in renamed]
    groups = AcousticGroups.from_sets(sets)
    old = all_coarse_probs(case.target, case.groups)
    assert torch.allclose(all_coarse_probs(case.target[renamed], groups), old[renamed], atol=1e-12)
