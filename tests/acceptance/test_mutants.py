"""Deliberately wrong rules are caught: the checks fail for every one of these changes.

A mutant is the production source with one expression replaced, loaded beside the real module.
"""

import inspect
import types

import pytest
import torch
from scipy import stats

from pcg import coarse
from pcg.acceptance import grouped
from pcg.acceptance.rule import Rule
from pcg.coarse import all_coarse_probs
from pcg.randomness import Randomness
from tests.acceptance.cases import Case, cases
from tests.acceptance.laws import check_grouped, judged

MUTANTS = {
    "residual of tokens instead of groups": (
        coarse,
        "draft, target = coarse_pairs(draft_probs, target_probs, groups, labels)",
        "draft, target = draft_probs[tokens].tolist(), target_probs[tokens].tolist()",
    ),
    "the equal split forgotten": (
        coarse,
        "shares, places = groups.shares[members], members",
        "shares, places = np.ones(len(members)), members",
    ),
    "always a token's first group": (
        coarse,
        "randomness.index(groups.size(token))",
        "0",
    ),
    "ratio inverted": (
        grouped,
        "randomness.passes(target_coarse, draft_coarse)",
        "randomness.passes(draft_coarse, target_coarse)",
    ),
    "residual without the positive part": (
        coarse,
        "randomness.passes(above - below, above)",
        "randomness.passes(abs(above - below), above)",
    ),
    "no residual, the target itself": (
        coarse,
        "randomness.passes(above - below, above)",
        "randomness.passes(above, above)",
    ),
    "the exact residual without the positive part": (
        coarse,
        ".clamp(min=0)",
        ".abs()",
    ),
    "the target's group against the draft's token": (
        grouped,
        "randomness.passes(target_coarse, draft_coarse)",
        "randomness.passes(target_coarse, draft)",
    ),
    "the target's weight of the token in place of its group's": (
        grouped,
        "randomness.passes(target_coarse, draft_coarse)",
        "randomness.passes(target, draft_coarse)",
    ),
    "a member by the draft's weights": (
        coarse,
        "mass = target_probs[members] * groups.weights[members]",
        "mass = (draft_probs[members] + 1e-9) * groups.weights[members]",
    ),
}
FEW = [case for case in cases(128, largest=4, seed=11) if 3 <= len(case.groups.indices) <= 8]


def mutated(module: types.ModuleType, old: str, new: str) -> type[grouped.GroupedRule]:
    """The group rule of a package in which one expression was replaced."""
    made: dict[str, types.ModuleType] = {}
    for real in (coarse, grouped):
        source = inspect.getsource(real)
        if real is module:
            assert old in source, "the expression to change is gone: bring the mutant up to date"
            source = source.replace(old, new)
        copy = types.ModuleType(real.__name__)
        exec(compile(source, f"mutant of {real.__name__}", "exec"), copy.__dict__)
        made[real.__name__] = copy
    below, rule = made[coarse.__name__], made[grouped.__name__]
    for name in ("thin", "draw_labels", "coarse_pairs"):
        setattr(rule, name, getattr(below, name))
    found: type[grouped.GroupedRule] = rule.GroupedRule
    return found


def check(make: type[grouped.GroupedRule]) -> None:
    for case in FEW:
        for trials in (0, 1):
            check_grouped(make(case.groups, max_trials=trials, batch=1), case)


def test_the_checks_pass_the_real_rule() -> None:
    check(mutated(coarse, "draft", "draft"))
    check(grouped.GroupedRule)


@pytest.mark.parametrize("name", MUTANTS)
def test_a_wrong_rule_is_caught(name: str) -> None:
    with pytest.raises(AssertionError):
        check(mutated(*MUTANTS[name]))


def chance(rule: Rule, case: Case, draws: int = 1500) -> float:
    """p-value of drawn labels against Q_c."""
    choices = Randomness(torch.Generator().manual_seed(7))
    labels = torch.tensor([judged(rule, case, choices)[1] for _ in range(draws)])
    wanted = all_coarse_probs(case.target, case.groups)
    counts = torch.bincount(labels, minlength=case.size)
    kept = wanted > 0
    if int(counts[~kept].sum()):
        return 0.0
    return float(stats.chisquare(counts[kept], draws * wanted[kept] / wanted[kept].sum()).pvalue)


def apart() -> Case:
    """A draft and a target that often disagree, in groups that overlap."""
    found = [one for one in cases(96, seed=21) if "full" in one.name and one.size >= 6]
    return max(
        found,
        key=lambda one: (
            float((one.draft - one.target).abs().sum())
            * float((one.groups.sizes > 1).float().mean())
        ),
    )


def test_drawn_labels_pass_for_the_real_rule() -> None:
    assert chance(grouped.GroupedRule(apart().groups), apart()) > 1e-4


@pytest.mark.parametrize(
    "name",
    [
        "residual of tokens instead of groups",
        "residual without the positive part",
        "no residual, the target itself",
        "ratio inverted",
    ],
)
def test_draws_expose_a_wrong_residual(name: str) -> None:
    assert chance(mutated(*MUTANTS[name])(apart().groups), apart()) < 1e-6
