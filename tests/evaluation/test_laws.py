"""The closed forms against plain enumeration and simulation, and against wrong variants."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from pcg import theory
from pcg.evaluation import laws
from pcg.groups import NestedGroups
from tests.evaluation.fake import FakeNested


def rows(seed: int, size: int = 32, n: int = 5) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.dirichlet(np.full(size, 0.4), n), rng.dirichlet(np.full(size, 0.4), n)


def enumerated_pcg(p: np.ndarray, q: np.ndarray, matrix: Any) -> np.ndarray:
    """The law by walking every (token, group) pair of both branches."""
    member = matrix.toarray() > 0
    size = len(p)
    weight = member / member.sum(axis=0)
    p_c, q_c = weight @ p, weight @ q
    law = np.zeros(size)
    for t in range(size):
        for k in range(size):
            law[t] += p[t] * weight[k, t] * min(1.0, q_c[k] / p_c[k])
    excess = np.maximum(q_c - p_c, 0)
    rejected = 1 - np.minimum(p_c, q_c).sum()
    for k in range(size):
        for t in range(size):
            law[t] += rejected * excess[k] / excess.sum() * weight[k, t] * q[t] / q_c[k]
    return law


@pytest.mark.parametrize("theta", [-1.0, -3.0])
def test_pcg_law_is_the_enumeration(theta: float) -> None:
    matrix = laws.adjacency(FakeNested().at(theta))
    draft, target = rows(0)
    law = laws.pcg_law(draft, target, matrix)
    for i in range(len(draft)):
        np.testing.assert_allclose(law[i], enumerated_pcg(draft[i], target[i], matrix), atol=1e-12)
    np.testing.assert_allclose(law.sum(axis=1), 1, atol=1e-12)
    assert (laws.distance(law, target) > 0.01).all()


def test_batched_laws_agree_with_the_single_position_forms() -> None:
    groups = NestedGroups.from_table(torch.randn(32, 6), theta_min=0.0).at(0.3)
    draft, target = rows(7)
    batched = laws.pcg_law(draft, target, laws.adjacency(groups))
    for i in range(len(draft)):
        single = theory.grouped_law(torch.tensor(draft[i]), torch.tensor(target[i]), groups)
        np.testing.assert_allclose(batched[i], single.numpy(), atol=1e-12)


def test_pcg_keeps_the_group_law_where_ssd_does_not() -> None:
    """The label law of the emitting step is Q_c; a token's group is drawn uniformly afterwards, so
    what is checked here is the branch law: kept labels plus refilled labels.
    """
    matrix = laws.adjacency(FakeNested().at(-2.0))
    draft, target = rows(1)
    p, q = laws.coarse(draft, matrix), laws.coarse(target, matrix)
    labels = np.minimum(p, q) + np.maximum(q - p, 0)
    np.testing.assert_allclose(labels, q, atol=1e-12)
    biased = laws.coarse(laws.ssd_law(draft, target, 0.4), matrix)
    assert (laws.distance(biased, q) > 0.005).all()


def test_singletons_are_exact_and_groups_accept_more() -> None:
    draft, target = rows(2)
    single = laws.adjacency(FakeNested().at(0.0))
    np.testing.assert_allclose(laws.pcg_law(draft, target, single), target, atol=1e-12)
    matrix = laws.adjacency(FakeNested().at(-4.0))
    coarse = laws.overlap(laws.coarse(draft, matrix), laws.coarse(target, matrix))
    assert (coarse > laws.overlap(draft, target)).all()


def test_ssd_law_and_its_closed_drift() -> None:
    draft, target = rows(3)
    for beta in (0.0, 0.4, 1.0):
        drift = laws.distance(laws.ssd_law(draft, target, beta), target)
        less = target < draft
        closed = (np.minimum(beta * draft, draft - target) * less).sum(axis=1)
        np.testing.assert_allclose(drift, closed, atol=1e-12)
    np.testing.assert_allclose(laws.ssd_acceptance(draft, target, 1.0), 1)


def test_ssd_law_agrees_with_simulation() -> None:
    draft, target = (row[0] for row in rows(4, size=6))
    rng = np.random.default_rng(0)
    tokens = rng.choice(6, 200_000, p=draft)
    keep = rng.random(len(tokens)) < np.minimum(1, target / draft)[tokens] + 0.3
    excess = np.maximum(target - draft, 0)
    tokens[~keep] = rng.choice(6, int((~keep).sum()), p=excess / excess.sum())
    counted = np.bincount(tokens, minlength=6) / len(tokens)
    law = laws.ssd_law(draft[None], target[None], 0.3)[0]
    np.testing.assert_allclose(counted, law, atol=0.005)


def test_matching_finds_equal_acceptance() -> None:
    draft, target = rows(5, n=50)
    wanted = 0.8
    beta = laws.solve_beta(draft, target, wanted)
    assert laws.ssd_acceptance(draft, target, beta).mean() == pytest.approx(wanted, abs=1e-6)
    matrix = laws.adjacency(FakeNested().at(-3.0))
    reached = float(laws.overlap(laws.coarse(draft, matrix), laws.coarse(target, matrix)).mean())
    theta, found = laws.solve_theta(draft, target, FakeNested(), reached)
    assert found == pytest.approx(reached, abs=1e-9) and -4.01 <= theta <= -2.99
