"""Pairs of rows and groups to enumerate: random ones, and every degenerate kind."""

import random
from dataclasses import dataclass

import torch
from torch import Tensor

from pcg.groups import AcousticGroups

KINDS = ("full", "zeros", "one_hot_draft", "one_hot_target", "same", "disjoint", "peaked", "flat")


@dataclass(frozen=True)
class Case:
    """One verified position: rows ``(V,)`` float64 and groups."""

    name: str
    draft: Tensor
    target: Tensor
    groups: AcousticGroups

    @property
    def size(self) -> int:
        return len(self.draft)


def _row(chooser: random.Random, ids: list[int], size: int, sharp: float = 1.0) -> Tensor:
    row = torch.zeros(size, dtype=torch.float64)
    for one in ids:
        row[one] = chooser.expovariate(1.0) ** sharp + 1e-6
    return row / row.sum()


def _rows(chooser: random.Random, kind: str, size: int) -> tuple[Tensor, Tensor]:
    everything = list(range(size))
    some = [chooser.sample(everything, chooser.randint(1, size)) for _ in range(2)]
    one = [[chooser.randrange(size)] for _ in range(2)]
    full = _row(chooser, everything, size)
    other = _row(chooser, everything, size)
    middle = max(1, size // 2)
    return {
        "full": (full, other),
        "zeros": (_row(chooser, some[0], size), _row(chooser, some[1], size)),
        "one_hot_draft": (_row(chooser, one[0], size), other),
        "one_hot_target": (full, _row(chooser, one[1], size)),
        "same": (full, full.clone()),
        "disjoint": (
            _row(chooser, everything[:middle], size),
            _row(chooser, everything[middle:] or everything[:1], size),
        ),
        "peaked": (_row(chooser, everything, size, 4.0), _row(chooser, everything, size, 4.0)),
        "flat": (torch.full((size,), 1.0 / size, dtype=torch.float64), other),
    }[kind]


def _groups(chooser: random.Random, size: int) -> AcousticGroups:
    links = chooser.choice([0.0, 0.5, 1.0, 1.5, 3.0]) / size
    sets = [[b for b in range(a) if chooser.random() < links] for a in range(size)]
    return AcousticGroups.from_sets(sets)


def cases(count: int, largest: int = 12, seed: int = 0) -> list[Case]:
    """``count`` cases with 1 to ``largest`` ids; each kind equally often.

    Sizes go round, from a start that depends on the seed.
    """
    chooser = random.Random(seed)
    made = []
    for number in range(count):
        kind = KINDS[number % len(KINDS)]
        size = 1 + (number // len(KINDS) + seed) % largest
        draft, target = _rows(chooser, kind, size)
        groups = _groups(chooser, size)
        if number % 29 == 7:
            groups = AcousticGroups.singletons(size)
        if number % 29 == 11 and size < 6:
            groups = AcousticGroups.everything(size)
        made.append(Case(f"{number}-{kind}-{size}", draft, target, groups))
    return made
