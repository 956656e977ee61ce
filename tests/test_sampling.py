"""Logits to probabilities, and draws."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from pcg.errors import PcgError
from pcg.sampling import Sampling, draw, logits_to_probs, pick, pick_from_row

LARGE = 65_537


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize(
    ("values", "word"),
    [
        ({"temperature": -0.1}, "temperature"),
        ({"temperature": math.nan}, "temperature"),
        ({"temperature": 11}, "temperature"),
        ({"top_k": -1}, "top-k"),
        ({"top_k": 1.5}, "top-k"),
        ({"top_p": 0.0}, "top-p"),
        ({"top_p": 1.01}, "top-p"),
        ({"top_p": math.nan}, "top-p"),
    ],
)
def test_settings_out_of_range_are_refused(values: dict[str, float], word: str) -> None:
    with pytest.raises(PcgError, match=word):
        Sampling(**values)  # type: ignore[arg-type]


def test_temperature_then_top_k_then_top_p() -> None:
    logits = torch.tensor([2.0, 1.0, 0.0, -1.0])
    plain = logits_to_probs(logits, Sampling(0.5))
    assert torch.allclose(plain, (logits / 0.5).softmax(0))
    best = logits_to_probs(logits, Sampling(1.0, top_k=2))
    assert torch.allclose(best, torch.tensor([2.0, 1.0, -math.inf, -math.inf]).softmax(0))
    # 0.644, 0.237, 0.087, 0.032: 0.88 is reached by two
    nucleus = logits_to_probs(logits, Sampling(1.0, top_p=0.88))
    assert nucleus.count_nonzero() == 2
    assert torch.allclose(nucleus, best)
    both = logits_to_probs(logits, Sampling(1.0, top_k=2, top_p=0.7))
    assert both.tolist() == [1.0, 0.0, 0.0, 0.0], "top-p acts on what top-k left (0.731, 0.269)"


def test_temperature_zero_is_one_hot() -> None:
    rows = logits_to_probs(torch.tensor([[0.0, 3.0, 1.0], [5.0, 1.0, 1.0]]), Sampling(0.0))
    assert rows.tolist() == [[0.0, 1.0, 0.0], [1.0, 0.0, 0.0]]


def test_top_p_beyond_the_partial_sort() -> None:
    """A flat row needs more ids than the partial sort looks at."""
    rows = logits_to_probs(torch.zeros(2, 5000), Sampling(1.0, top_p=0.9))
    assert rows.count_nonzero(dim=1).tolist() == pytest.approx([4500, 4500], abs=3)
    assert torch.allclose(rows.sum(1), torch.ones(2))


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_broken_logits_are_refused(bad: float) -> None:
    with pytest.raises(PcgError, match="not numbers"):
        logits_to_probs(torch.tensor([0.0, bad, 1.0]), Sampling())
    with pytest.raises(PcgError, match="not numbers"):
        logits_to_probs(torch.full((3,), -math.inf), Sampling())


@given(
    st.lists(st.floats(-80, 80), min_size=1, max_size=20),
    st.sampled_from([0.0, 0.1, 0.8, 2.0]),
    st.integers(0, 6),
    st.floats(0.05, 1.0),
)
@settings(max_examples=60, deadline=None)
def test_rows_are_probabilities_and_draws_possible(
    logits: list[float], temperature: float, top_k: int, top_p: float
) -> None:
    row = logits_to_probs(torch.tensor(logits), Sampling(temperature, top_k, top_p))
    assert row.dtype == torch.float32
    assert float(row.sum()) == pytest.approx(1.0, abs=1e-5)
    assert bool((row >= 0).all())
    assert not top_k or int(row.count_nonzero()) <= top_k
    assert float(row[draw(row, generator())]) > 0


def test_draws_follow_the_row() -> None:
    row = torch.tensor([0.5, 0.0, 0.2, 0.2, 0.1, 0.0])
    ids = draw(row.expand(20_000, -1), generator(3))
    counts = torch.bincount(ids, minlength=6)
    assert counts[1] == counts[5] == 0
    kept = [0, 2, 3, 4]
    assert stats.chisquare(counts[kept], 20_000 * row[kept].double()).pvalue > 1e-4


def test_points_at_the_edges() -> None:
    row = torch.tensor([0.0, 0.25, 0.0, 0.75, 0.0])
    points = torch.tensor([0.0, 0.25, 1 - 2**-53], dtype=torch.float64)
    assert pick(row, points).tolist() == [1, 3, 3]
    assert pick(torch.stack([row, row.flip(0)]), points.expand(2, -1)).tolist() == [
        [1, 3, 3],
        [1, 1, 3],
    ]


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_low_precision_over_a_large_vocabulary(dtype: torch.dtype) -> None:
    """A million draws: no NaN, and never an id of probability zero, with tails of 1e-30."""
    logits = torch.randn(LARGE, generator=generator(1)).mul(6).to(dtype)
    logits[::3] = float(logits.max()) - 68  # e^-68 is 3e-30
    logits[1::3] = -60_000.0
    row = logits_to_probs(logits, Sampling(1.0))
    assert bool(torch.isfinite(row).all())
    assert float(row.sum()) == pytest.approx(1.0, abs=1e-4)
    tails = row[(row > 0) & (row < 1e-28)]
    assert len(tails) > 20_000
    points = torch.rand(1_000_000, generator=generator(2), dtype=torch.float64)
    ids = pick(row, points)
    assert float(row[ids].min()) > 0
    mass = torch.bincount(ids, minlength=LARGE).double() / len(ids)
    assert float((mass - row.double()).abs().max()) < 2e-3
    assert float(row[draw(row.expand(4, -1), generator())].min()) > 0


def test_one_row_is_picked_from_alike_in_both_ways():
    generator = torch.Generator().manual_seed(3)
    for size, holes in ((1, 0), (7, 3), (4097, 4000)):
        row = torch.rand(size, generator=generator)
        row[torch.randperm(size, generator=generator)[:holes]] = 0.0
        points = torch.rand(200, generator=generator, dtype=torch.float64)
        points[:3] = torch.tensor([0.0, 0.5, 1 - 2**-53])
        assert pick_from_row(row, points.tolist()).tolist() == pick(row, points).tolist()
        assert (row[pick_from_row(row, points.tolist())] > 0).all()
