"""Swapping stays inside groups, hits the share, and nests over shares."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from pcg.errors import PcgError
from pcg.swap import CONTROLS, swap_codes

SIZE = 40


def groups() -> Any:
    """Blocks of 4; code 39 stands alone; SIZE is the end token."""

    def members(k: int) -> np.ndarray:
        return np.array([k]) if k >= 36 else np.arange(k // 4 * 4, k // 4 * 4 + 4)

    return SimpleNamespace(n_codes=SIZE, members=members)


CODES = [int(code) for code in np.random.default_rng(0).integers(0, 36, 500)]


def test_swaps_stay_in_groups_and_change_the_code() -> None:
    out = swap_codes(CODES, groups(), 0.5, seed=1)
    assert len(out.positions) == 250 and out.realised == 0.5
    for i, (before, after) in enumerate(zip(CODES, out.codes, strict=True)):
        assert (before != after) == (i in out.positions)
        assert before // 4 == after // 4


def test_members_are_uniform() -> None:
    out = swap_codes([8] * 6000, groups(), 1.0, seed=2)
    counts = np.bincount(out.codes, minlength=12)[8:12]
    assert counts[0] == 0 and abs(counts[1:] - 2000).max() < 200


def test_shares_nest_and_controls_use_the_same_positions() -> None:
    small, large = (swap_codes(CODES, groups(), share, 3) for share in (0.2, 0.8))
    assert set(small.positions) < set(large.positions)
    for control in CONTROLS:
        assert swap_codes(CODES, groups(), 0.8, 3, control).positions == large.positions  # type: ignore[arg-type]


def test_wrong_group_controls_leave_the_group() -> None:
    for control in ("shuffled", "any"):
        out = swap_codes(CODES, groups(), 1.0, 4, control)  # type: ignore[arg-type]
        outside = np.mean([a // 4 != b // 4 for a, b in zip(CODES, out.codes, strict=True)])
        assert outside > 0.8 and all(a != b for a, b in zip(CODES, out.codes, strict=True))


def test_singletons_cannot_be_swapped_and_zero_is_nothing() -> None:
    out = swap_codes([39, 0, 39, 1], groups(), 1.0)
    assert out.possible == 2 and out.positions == (1, 3) and out.realised == 0.5
    assert swap_codes(CODES, groups(), 0.0).codes == tuple(CODES)
    assert swap_codes([], groups(), 1.0).realised == 0.0


@pytest.mark.parametrize(
    ("codes", "share", "control"), [([1], 1.5, "group"), ([1], 0.5, "x"), ([SIZE], 0.5, "group")]
)
def test_refusals(codes: list[int], share: float, control: Any) -> None:
    with pytest.raises(PcgError):
        swap_codes(codes, groups(), share, control=control)
