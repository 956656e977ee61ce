"""What must hold for any rows and groups, and sentences for input that does not fit."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from pcg.acceptance import REGISTRY, make_rule
from pcg.acceptance.exact import ExactRule
from pcg.acceptance.grouped import GroupedRule
from pcg.acceptance.rule import Verdict
from pcg.errors import PcgError
from pcg.groups import AcousticGroups, NestedGroups
from tests.acceptance.cases import cases

IDS, CODES = 9, 8
TABLE = torch.randn(CODES, 3, generator=torch.Generator().manual_seed(1))
NESTED = NestedGroups.from_table(TABLE, 0.1, IDS)


def generator(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def block(seed: int, size: int = IDS, lookahead: int = 3) -> tuple[list[int], Tensor, Tensor]:
    """(drafted ids, draft rows, target rows) in float32."""
    maker = generator(seed)
    draft = (2 * torch.randn(lookahead, size, generator=maker)).softmax(1)
    target = (2 * torch.randn(lookahead + 1, size, generator=maker)).softmax(1)
    ids = torch.multinomial(draft, 1, generator=maker)[:, 0].tolist()
    return ids, draft, target


def tokens(verdict: Verdict) -> list[int]:
    kept = [one.token for one in verdict.judgements if one.accepted]
    return [*kept, verdict.next_token]


@given(st.integers(0, 10_000), st.integers(2, 12))
@settings(max_examples=80, deadline=None)
def test_groups_of_one_give_sd_from_the_same_stream(seed: int, size: int) -> None:
    rows = block(seed, size)
    one = ExactRule().judge(*rows, generator(seed))
    other = GroupedRule(AcousticGroups.singletons(size)).judge(*rows, generator(seed))
    assert tokens(one) == tokens(other)
    assert [j.u for j in one.judgements] == [j.u for j in other.judgements]
    assert one.trials == other.trials


@given(st.integers(0, 10_000), st.sampled_from(["sd", "pcg", "ssd", "ensemble"]))
@settings(max_examples=80, deadline=None)
def test_equal_rows_are_never_rejected(seed: int, name: str) -> None:
    ids, draft, target = block(seed)
    target[:-1] = draft
    verdict = make_rule(name, groups=NESTED).judge(ids, draft, target, generator(seed))
    assert verdict.accepted == 3
    assert verdict.next_kind == "bonus"


@given(st.integers(0, 10_000))
@settings(max_examples=40, deadline=None)
def test_one_group_of_everything_accepts_everything(seed: int) -> None:
    verdict = GroupedRule(AcousticGroups.everything(IDS)).judge(*block(seed), generator(seed))
    assert verdict.accepted == 3


@given(st.integers(0, 10_000), st.sampled_from(sorted(set(REGISTRY) - {"target"})))
@settings(max_examples=150, deadline=None)
def test_a_verdict_is_complete_and_repeats(seed: int, name: str) -> None:
    ids, draft, target = block(seed)
    rule = make_rule(name, groups=NESTED, embeddings=TABLE)
    verdict = rule.judge(ids, draft, target, generator(seed))
    assert verdict == rule.judge(ids, draft, target, generator(seed)), "pure"
    count = len(verdict.judgements)
    assert [one.position for one in verdict.judgements] == list(range(count))
    assert [one.token for one in verdict.judgements] == ids[:count]
    assert all(one.accepted for one in verdict.judgements[:-1])
    assert verdict.accepted == sum(one.accepted for one in verdict.judgements)
    assert count == 3 or not verdict.judgements[-1].accepted
    assert verdict.next_kind in (("bonus",) if verdict.accepted == 3 else ("residual", "fallback"))
    row = target[verdict.accepted]
    assert verdict.next_prob == float(row[verdict.next_token])
    for one in verdict.judgements:
        assert one.draft_prob == float(draft[one.position, one.token])
        assert one.target_prob == float(target[one.position, one.token])
        assert 0 <= one.u < 1
        assert one.exact_accepts == (one.u * one.draft_prob < one.target_prob)
        assert one.accepted == (one.u < one.ratio) or math.isclose(one.u, one.ratio)
        assert one.why.endswith(".")
        if name == "pcg":
            assert one.group is not None and one.token in NESTED.at(0.4).members(one.group)
            assert one.group_size == NESTED.at(0.4).size(one.group)
            assert one.draft_coarse is not None and one.draft_coarse > 0


def test_every_rule_says_what_it_is() -> None:
    for name, spec in REGISTRY.items():
        assert spec.name == name
        assert spec.label and spec.source and spec.guarantee
        assert spec.description.endswith(".") and spec.description.count(". ") == 0
        rule = make_rule(name, groups=NESTED, embeddings=TABLE)
        assert rule.name == name
        assert set(rule.params) <= {one.name for one in spec.parameters} | {"delta"}
        for one in spec.parameters:
            assert one.minimum <= one.default <= one.maximum
            assert one.check(one.default) == one.default
            for wrong in (one.minimum - 1, one.maximum + 1, "much", None, math.nan):
                with pytest.raises(PcgError, match="must be"):
                    make_rule(name, groups=NESTED, embeddings=TABLE, **{one.name: wrong})


@pytest.mark.parametrize(
    ("name", "params", "sentence"),
    [
        ("ssd", {"beta": -0.1}, "beta must be between 0 and 1"),
        ("pcg", {"theta": -1.0}, "theta must be between"),
        ("pcg", {"theta": 1.5}, "theta must be between"),
        ("pcg", {"theta": 0.05}, "stored from theta"),
        ("sd", {"beta": 0.1}, "has no parameter"),
        ("tolerance", {"tau": 1.5}, "whole number"),
        ("nonsense", {}, "no rule 'nonsense'"),
    ],
)
def test_bad_parameters(name: str, params: dict[str, float], sentence: str) -> None:
    with pytest.raises(PcgError, match=sentence):
        make_rule(name, groups=NESTED, **params)


def test_rules_say_what_they_lack() -> None:
    for name, word in (("pcg", "groups"), ("lantern", "embedding"), ("gsd", "embedding")):
        with pytest.raises(PcgError, match=word):
            make_rule(name)


@pytest.mark.parametrize("name", sorted(set(REGISTRY) - {"target"}))
def test_bad_rows(name: str) -> None:
    ids, draft, target = block(0)
    rule = make_rule(name, groups=NESTED, embeddings=TABLE)
    broken = target.clone()
    broken[1, 2] = math.nan
    wrong = [
        (ids, draft, broken, "not a probability"),
        (ids, draft * 2, target, "not a probability"),
        (ids, draft, target[:-1], "one row for each"),
        (ids, draft[:, :-1], target, "same vocabulary"),
        ([0, 1, IDS], draft, target, "outside the vocabulary"),
        ([-1, 1, 2], draft, target, "outside the vocabulary"),
    ]
    for one in wrong:
        with pytest.raises(PcgError, match=one[3]):
            rule.judge(*one[:3], generator(0))


def test_groups_of_another_vocabulary() -> None:
    with pytest.raises(PcgError, match="built for 9 ids, the models have 12"):
        make_rule("pcg", groups=NESTED).judge(*block(0, 12), generator(0))


def test_target_only_drafts_nothing() -> None:
    ids, draft, target = block(0)
    rule = make_rule("target")
    with pytest.raises(PcgError, match="lookahead to 0"):
        rule.judge(ids, draft, target, generator(0))
    verdict = rule.judge([], draft[:0], target[:1], generator(0))
    assert verdict.judgements == () and verdict.next_kind == "bonus"


def test_half_of_the_cases_have_overlapping_groups() -> None:
    assert sum(bool((one.groups.sizes > 1).any()) for one in cases(100)) >= 40
