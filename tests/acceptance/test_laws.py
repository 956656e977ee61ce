"""Exact enumeration: the laws that the rules promise, to 1e-9, through the production code."""

import pytest
import torch
from torch import Tensor

from pcg import theory
from pcg.acceptance.biased import BiasedRule
from pcg.acceptance.ensemble import EnsembleRule
from pcg.acceptance.exact import ExactRule
from pcg.acceptance.grouped import GroupedRule
from pcg.acceptance.lantern import LanternRule
from pcg.acceptance.tolerance import ToleranceRule
from pcg.acceptance.top_k import TopKRule
from pcg.coarse import all_coarse_probs, group_alpha
from pcg.groups import AcousticGroups
from tests.acceptance.branches import law_of, visit
from tests.acceptance.cases import Case, cases
from tests.acceptance.laws import EXACT, check_grouped, gap, token_law

ALL = cases(208)
SOME = ALL[::5]


def test_there_are_enough_cases_of_every_kind() -> None:
    assert len(ALL) >= 200
    assert max(case.size for case in ALL) == 12
    assert sum(bool((case.draft * case.target).sum() == 0) for case in ALL) > 20, "disjoint"
    assert sum(torch.equal(case.draft, case.target) for case in ALL) > 20
    assert sum(int((case.draft > 0).sum()) == 1 for case in ALL) > 20
    assert sum(bool((case.groups.sizes > 1).any()) for case in ALL) > 90


def test_sd_tokens_follow_the_target() -> None:
    for case in ALL:
        assert gap(token_law(ExactRule(0), case), case.target) < EXACT, case.name


def test_pcg_labels_follow_the_targets_groups() -> None:
    for case in ALL:
        check_grouped(GroupedRule(case.groups, max_trials=0), case)


def test_the_same_with_thinning_trials() -> None:
    small = [case for case in cases(160, largest=4) if len(case.groups.indices) <= 6]
    assert len(small) > 80
    for case in small:
        check_grouped(GroupedRule(case.groups, max_trials=1, batch=1), case)
        rule = ExactRule(max_trials=1, batch=1)
        assert gap(token_law(rule, case), case.target) < EXACT, case.name


def test_pcg_accepts_with_the_overlap_of_groups() -> None:
    for case in SOME:
        rule = GroupedRule(case.groups, max_trials=0)
        rows = torch.stack([case.target, case.target])
        accepted = 0.0
        for token in case.draft.nonzero()[:, 0].tolist():
            law = law_of(
                lambda choices, t=token, c=case, w=rows, r=rule: (
                    r.judge([t], c.draft[None], w, choices).accepted
                )
            )
            accepted += float(case.draft[token]) * law.get(1, 0.0)
        alpha = float(group_alpha(case.draft, case.target, case.groups))
        assert accepted == pytest.approx(alpha, abs=EXACT), case.name


@pytest.mark.parametrize("beta", [0.0, 0.15, 0.4, 1.0])
def test_ssd_drifts_by_its_closed_form(beta: float) -> None:
    for case in ALL:
        law = token_law(BiasedRule(beta), case)
        closed = theory.ssd_law(case.draft, case.target, beta)
        assert gap(law, closed) < EXACT, case.name
        below = (case.draft - case.target).clamp(min=0)
        moved = torch.minimum(beta * case.draft, below).sum()
        drift = float(theory.drift(closed, case.target))
        assert drift == pytest.approx(float(moved), abs=EXACT), case.name


@pytest.mark.parametrize("weight", [0.0, 0.3, 0.7, 1.0])
def test_the_ensemble_follows_its_mixture(weight: float) -> None:
    for case in ALL:
        law = token_law(EnsembleRule(weight), case)
        wanted = weight * case.target + (1 - weight) * case.draft
        assert gap(law, wanted) < EXACT, case.name


def kept_or(case: Case, passes: Tensor, otherwise: Tensor) -> Tensor:
    """Law of a rule that keeps t with ``passes[t]`` and draws from ``otherwise`` if not."""
    kept = case.draft * passes
    return kept + (1 - kept.sum()) * otherwise


@pytest.mark.parametrize("tau", [1, 3])
def test_tolerance_keeps_what_tau_draws_hold(tau: int) -> None:
    for case in SOME:
        passes = 1 - (1 - case.target) ** tau
        wanted = kept_or(case, passes, case.target)
        assert gap(token_law(ToleranceRule(tau), case), wanted) < EXACT, case.name


def test_top_k_keeps_the_targets_best() -> None:
    for case in SOME:
        best = case.target.topk(min(2, case.size)).indices
        inside = torch.zeros_like(case.target)
        inside[best] = 1.0
        law = token_law(TopKRule(2), case)
        otherwise = case.target * inside / (case.target * inside).sum()
        ties = case.target >= case.target[best[-1]]
        wanted = kept_or(case, (ties & (case.target > 0)).double(), otherwise)
        assert gap(law, wanted) < EXACT, case.name


def test_lantern_without_a_loan_is_sd_and_its_loan_is_bounded() -> None:
    for case in SOME:
        table = torch.randn(case.size, 2, generator=torch.Generator().manual_seed(case.size))
        for rule in (LanternRule(table, 3, delta=0.0), LanternRule(table, 3, lam=1.0)):
            assert gap(token_law(rule, case), case.target) < EXACT, case.name
        for token in range(case.size):
            used, mass = LanternRule(table, 3, delta=0.2).lent(token, case.target)
            assert mass <= 0.2
            assert token not in used.tolist()
            _, mass = LanternRule(table, 3, lam=1.5).lent(token, case.target)
            assert mass <= 0.5 * float(case.target[token])


def test_two_positions_in_a_row() -> None:
    """The second judged token of a block follows its own row too, for SD and for PCG's labels."""
    first, second = [case for case in cases(120, largest=4, seed=2) if case.size == 3][:2]
    groups = AcousticGroups.from_sets([[0, 1], [1], [2]])
    drafts = torch.stack([first.draft, second.draft])
    after = torch.tensor([1.0, 0.0, 0.0], dtype=torch.float64)
    rows = torch.stack([first.target, second.target, after])
    for rule, held in (
        (ExactRule(0), AcousticGroups.singletons(3)),
        (GroupedRule(groups, max_trials=0), groups),
    ):
        reached, labels = 0.0, torch.zeros(3, dtype=torch.float64)
        for probability, verdict in visit(
            lambda choices, r=rule: r.judge(
                [choices.categorical(drafts[0]), choices.categorical(drafts[1])],
                drafts,
                rows,
                choices,
            )
        ):
            if len(verdict.judgements) < 2:
                continue
            last = verdict.judgements[1]
            label = last.group if last.accepted else verdict.next_group
            if label is None:
                label = last.token if last.accepted else verdict.next_token
            reached += probability
            labels[label] += probability
        wanted = all_coarse_probs(second.target, held)
        assert reached == pytest.approx(float(group_alpha(first.draft, first.target, held)))
        assert gap(labels / reached, wanted) < EXACT
