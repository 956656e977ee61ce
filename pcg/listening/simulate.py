"""Listeners with known preferences, to check the analysis against and to plan a study with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Crowd:
    """How listeners differ: standard deviations of a listener's and an item's leaning, of both for
    one system, and of one vote, all on the scale of the scores (MOS) or of log odds (pairs).
    """

    listener: float = 0.4
    item: float = 0.3
    listener_system: float = 0.2
    item_system: float = 0.2
    vote: float = 0.7


def _leanings(
    means: Floats, listeners: int, items: int, crowd: Crowd, rng: np.random.Generator
) -> Floats:
    """(L, I, S) expected scores."""
    systems = len(means)
    return np.asarray(
        means
        + rng.normal(0, crowd.listener, (listeners, 1, 1))
        + rng.normal(0, crowd.item, (1, items, 1))
        + rng.normal(0, crowd.listener_system, (listeners, 1, systems))
        + rng.normal(0, crowd.item_system, (1, items, systems))
    )


def scores(
    means: Sequence[float],
    listeners: int,
    items: int,
    crowd: Crowd,
    rng: np.random.Generator,
    rounded: bool = True,
) -> Floats:
    """Scores (L, I, S) of a full design; `rounded` to half steps within 1..5 as on the page."""
    latent = _leanings(np.asarray(means, dtype=np.float64), listeners, items, crowd, rng)
    latent = latent + rng.normal(0, crowd.vote, latent.shape)
    return np.clip(np.round(2 * latent) / 2, 1, 5) if rounded else latent


def choices(
    abilities: Sequence[float], listeners: int, items: int, crowd: Crowd, rng: np.random.Generator
) -> Floats:
    """Wins (L, I, S, S) of a full paired design: every listener judges every pair of every item
    once.
    """
    leaning = _leanings(np.asarray(abilities, dtype=np.float64), listeners, items, crowd, rng)
    chance = 1 / (1 + np.exp(leaning[..., None, :] - leaning[..., :, None]))
    upper = np.triu(rng.random(chance.shape) < chance, 1)
    lower = np.triu(1 - upper, 1)
    return np.asarray(upper + np.swapaxes(lower, -1, -2), dtype=np.float64)


def long_form(
    values: Floats,
) -> tuple[Floats, npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """(scores, systems, listeners, items), each (n,), of scores (L, I, S)."""
    who, what, which = np.meshgrid(*map(np.arange, values.shape), indexing="ij")
    return values.ravel(), which.ravel(), who.ravel(), what.ravel()
