"""Visits every branch of the production code: a scripted source of randomness.

:func:`visit` runs a function again and again, each time along another sequence of choices, and
yields every outcome with its exact probability. Nothing is sampled and no rule is written twice.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import torch
from torch import Tensor

from pcg.randomness import Randomness

Outcome = TypeVar("Outcome")
Law = dict[Any, float]


class Script(Randomness):
    """Follows a list of choices, then takes the first possible one, and remembers the others."""

    def __init__(self, followed: list[int]) -> None:
        self.followed, self.options = followed, list[list[int]]()
        self.taken, self.probability = list[int](), 1.0

    def choose(self, chances: list[float]) -> int:
        possible = [place for place, chance in enumerate(chances) if chance > 0]
        depth = len(self.taken)
        chosen = self.followed[depth] if depth < len(self.followed) else possible[0]
        self.options.append(possible)
        self.taken.append(chosen)
        self.probability *= chances[chosen]
        return chosen

    def uniforms(self, count: int) -> list[float]:
        raise AssertionError("a rule asks for choices, not for numbers")

    def passes(self, left: float, right: float) -> tuple[float, bool]:
        if right > 0:
            chance = min(1.0, max(0.0, left / right))
        else:
            chance = float(left > 0)
        passed = self.choose([chance, 1.0 - chance]) == 0
        return (chance / 2 if passed else (1.0 + chance) / 2), passed

    def index(self, count: int) -> int:
        return self.choose([1.0 / count] * count)

    def categorical(self, weights: Tensor) -> int:
        chances = weights.double() / weights.double().sum()
        return self.choose(chances.tolist())

    def categoricals(self, weights: Tensor, count: int) -> list[int]:
        return [self.categorical(weights) for _ in range(count)]


def visit(run: Callable[[Randomness], Outcome]) -> Iterator[tuple[float, Outcome]]:
    """Every outcome of ``run`` with its probability; they sum to 1."""
    followed: list[int] = []
    while True:
        script = Script(followed)
        outcome = run(script)
        yield script.probability, outcome
        taken, options = script.taken, script.options
        while taken and taken[-1] == options[-1][-1]:
            taken.pop()
            options.pop()
        if not taken:
            return
        last = options[-1]
        followed = [*taken[:-1], last[last.index(taken[-1]) + 1]]


def law_of(run: Callable[[Randomness], Any]) -> Law:
    """Probability of each outcome."""
    law: Law = defaultdict(float)
    for probability, outcome in visit(run):
        law[outcome] += probability
    return law


def as_row(law: Law, size: int) -> Tensor:
    """A law over ids as a row ``(size,)`` float64."""
    row = torch.zeros(size, dtype=torch.float64)
    for place, probability in law.items():
        row[place] += probability
    return row
