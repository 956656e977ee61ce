"""The enumerated law of what a rule emits at one verified position, and the check of PCG's."""

from typing import Any

import torch
from torch import Tensor

from pcg import theory
from pcg.acceptance.rule import Rule
from pcg.coarse import all_coarse_probs
from pcg.randomness import Randomness
from tests.acceptance.branches import as_row, law_of
from tests.acceptance.cases import Case

EXACT = 1e-9


def judged(rule: Rule, case: Case, choices: Randomness) -> tuple[int, int | None]:
    """(token, label) that one position emits; the row after it is certain, and not a branch."""
    token = choices.categorical(case.draft)
    after = torch.zeros_like(case.target)
    after[0] = 1.0
    rows = torch.stack([case.target, after])
    verdict = rule.judge([token], case.draft[None], rows, choices)
    if verdict.accepted:
        return token, verdict.judgements[0].group
    return verdict.next_token, verdict.next_group


def emitted(rule: Rule, case: Case) -> dict[tuple[int, int | None], float]:
    """Probability of each (token, label)."""
    return law_of(lambda choices: judged(rule, case, choices))


def token_law(rule: Rule, case: Case) -> Tensor:
    """Law ``(V,)`` of the emitted token."""
    return margin(emitted(rule, case), 0, case.size)


def margin(law: dict[Any, float], side: int, size: int) -> Tensor:
    """One side of a law over pairs, as a row."""
    row = torch.zeros(size, dtype=torch.float64)
    for pair, probability in law.items():
        row += as_row({pair[side]: probability}, size)
    return row


def gap(one: Tensor, other: Tensor) -> float:
    """Largest difference."""
    return float((one - other).abs().max())


def check_grouped(rule: Rule, case: Case) -> None:
    """PCG's promise: labels follow Q_c; and the closed form of its token law."""
    law = emitted(rule, case)
    assert abs(sum(law.values()) - 1) < EXACT, case.name
    coarse = all_coarse_probs(case.target, case.groups)
    assert gap(margin(law, 1, case.size), coarse) < EXACT, case.name
    closed = theory.grouped_law(case.draft, case.target, case.groups)
    assert gap(margin(law, 0, case.size), closed) < EXACT, case.name
