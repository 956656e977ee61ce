"""The paper's Table 2: swap speech tokens inside their acoustic similarity groups and listen.

If a group really holds interchangeable sounds, swapping any share of the tokens inside their
groups keeps words and voice. The controls swap the same positions without that knowledge.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from pcg.errors import PcgError

Control = Literal["group", "shuffled", "any"]
CONTROLS: dict[str, str] = {
    "group": "another member of the token's own group, uniform",
    "shuffled": "a member of some other token's group: same group sizes, wrong neighbours",
    "any": "any other speech code, uniform",
}


@dataclass(frozen=True)
class Swapped:
    """Codes after the swap.

    ``positions`` were changed (always to a different code); ``possible`` is how many positions
    have a group to swap in. ``realised`` is the share of all tokens that changed.
    """

    codes: tuple[int, ...]
    positions: tuple[int, ...]
    possible: int
    share: float
    control: str

    @property
    def realised(self) -> float:
        """Share of all tokens that changed, 0..1."""
        return len(self.positions) / len(self.codes) if self.codes else 0.0


def swap_codes(
    codes: Sequence[int],
    groups: Any,
    share: float,
    seed: int = 0,
    control: Control = "group",
) -> Swapped:
    """Swap ``share`` (0..1) of ``codes`` for other tokens, by default inside their groups.

    ``groups`` is an AcousticGroups over at least ``groups.n_codes`` speech codes. Only tokens
    whose group has another speech code can change, and the positions are the same for every
    control and nested over shares at one seed, so that conditions differ in one thing only.

    Raises PcgError for a share outside 0..1, an unknown control or a code out of range.
    """
    if not 0 <= share <= 1:
        raise PcgError(f"The share of swapped tokens must lie in 0..1, not {share}.")
    if control not in CONTROLS:
        raise PcgError(f"Unknown swap control {control!r}: choose one of {', '.join(CONTROLS)}.")
    n_codes = int(groups.n_codes)
    if codes and not 0 <= min(codes) <= max(codes) < n_codes:
        raise PcgError(f"Only speech codes 0..{n_codes - 1} can be swapped.")
    ranks, picks = np.random.default_rng([seed, 1]), np.random.default_rng([seed, 2])
    chances = ranks.random(len(codes))
    others = [_others(groups, code, n_codes) for code in codes]
    possible = [i for i, members in enumerate(others) if members.size]
    wanted = sorted(sorted(possible, key=lambda i: chances[i])[: round(share * len(codes))])
    swapped = list(codes)
    for i in wanted:
        swapped[i] = _replacement(codes[i], others[i], groups, n_codes, control, picks)
    return Swapped(tuple(swapped), tuple(wanted), len(possible), share, control)


def _others(groups: Any, code: int, n_codes: int) -> NDArray[np.int64]:
    """The other speech codes in the group of ``code``."""
    members = np.asarray(groups.members(code), dtype=np.int64)
    others: NDArray[np.int64] = members[(members != code) & (members < n_codes)]
    return others


def _replacement(
    code: int,
    others: NDArray[np.int64],
    groups: Any,
    n_codes: int,
    control: Control,
    rng: np.random.Generator,
) -> int:
    if control == "group":
        return int(rng.choice(others))
    if control == "shuffled":
        for _ in range(100):
            strangers = _others(groups, int(rng.integers(n_codes)), n_codes)
            strangers = strangers[strangers != code]
            if strangers.size:
                return int(rng.choice(strangers))
    return int((code + rng.integers(1, n_codes)) % n_codes)
