"""The one source of chance: every random choice of a request passes through a `Randomness`.

Rules and draws never touch a generator themselves. They ask for one of three kinds of choice: a
token from a row (`categorical`), a place among n (`index`), a comparison with a uniform number
(`trial`). Tests hand in another object with the same methods and walk through every outcome, so
what they enumerate is the production code itself.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Protocol

import torch
from torch import Tensor

from pcg.errors import PcgError


class RandomSource(Protocol):
    """What a rule may ask of chance."""

    def categorical(self, probs: Tensor, count: int = 1) -> list[int]:
        """`count` independent ids drawn from the row `probs` (V,)."""
        ...

    def index(self, sizes: Sequence[int]) -> list[int]:
        """For each size n a place in 0..n-1, uniform; a size of 1 uses no random number."""
        ...

    def trial(self, weights: Sequence[float], bounds: Sequence[float]) -> list[tuple[float, bool]]:
        """For each pair a uniform u in [0, 1) and whether u * weight < bound."""
        ...


class Randomness:
    """`RandomSource` over one explicit `torch.Generator` on the CPU.

    Uniform numbers are float64 and made on the CPU, so a seed gives the same stream whatever
    device the rows are on.
    """

    def __init__(self, generator: torch.Generator) -> None:
        if generator.device.type != "cpu":
            raise PcgError("Give a torch.Generator of the CPU: the random stream is made there.")
        self.generator = generator

    @classmethod
    def seeded(cls, seed: int) -> Randomness:
        """A fresh stream for one request."""
        generator = torch.Generator()
        generator.manual_seed(int(seed))
        return cls(generator)

    def uniform(self, count: int) -> Tensor:
        """(count,) float64 in [0, 1)."""
        return torch.rand(count, generator=self.generator, dtype=torch.float64)

    def categorical(self, probs: Tensor, count: int = 1) -> list[int]:
        return locate(probs, self.uniform(count))

    def index(self, sizes: Sequence[int]) -> list[int]:
        open_choices = sum(size > 1 for size in sizes)
        numbers = iter(self.uniform(open_choices).tolist() if open_choices else ())
        return [min(int(next(numbers) * size), size - 1) if size > 1 else 0 for size in sizes]

    def trial(self, weights: Sequence[float], bounds: Sequence[float]) -> list[tuple[float, bool]]:
        numbers = self.uniform(len(weights)).tolist()
        return [
            (u, passes(u, weight, bound))
            for u, weight, bound in zip(numbers, weights, bounds, strict=True)
        ]


def passes(u: float, weight: float, bound: float) -> bool:
    """Whether u accepts: u * weight < bound, products rather than a ratio, so 0 / 0 rejects."""
    return u * weight < bound


def as_randomness(source: torch.Generator | RandomSource) -> RandomSource:
    """A generator wrapped, anything else as it is."""
    return Randomness(source) if isinstance(source, torch.Generator) else source


def locate(probs: Tensor, numbers: Tensor) -> list[int]:
    """Inverse of the cumulative sum of one row: the ids at which `numbers` (n,) in [0, 1) fall.

    `probs` (V,) need not be normalised. An id is returned only where the float64 cumulative sum
    rises, hence never one of zero probability.
    """
    cumulative = torch.cumsum(probs, -1, dtype=torch.float64)
    total = float(cumulative[-1])
    if not (0.0 < total < math.inf):
        raise PcgError("A probability row has no finite positive mass; check the model's logits.")
    below = (numbers * total).clamp_(max=math.nextafter(total, 0.0)).to(cumulative.device)
    found: list[int] = torch.searchsorted(cumulative, below, right=True).tolist()
    return found
