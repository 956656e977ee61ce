"""Who hears what in which order: balanced over listeners and within each, from the recorded seed
alone.

Item orders are rows of a Williams square (every item as often in each place and after each other
item), conditions rotate as a Latin square, and the left/right (or X) layouts are dealt evenly. The
stream is SHA-256, so a plan is the same on every machine and in every version of Python.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from string import ascii_uppercase
from typing import TypeVar

from pcg.listening.study import Item, Study

T = TypeVar("T")


@dataclass(frozen=True)
class Slot:
    """One clip of a trial: the letter a listener sees and the system behind it."""

    label: str
    system: str


@dataclass(frozen=True)
class Trial:
    """One question put to a listener."""

    index: int
    item: str
    practice: bool
    slots: tuple[Slot, ...]


def shuffled(values: Sequence[T], *key: object) -> list[T]:
    """`values` in an order fixed by `key` alone (Fisher-Yates over a SHA-256 stream)."""
    out = list(values)
    seed = "/".join(map(str, key)).encode()
    for last in range(len(out) - 1, 0, -1):
        digest = hashlib.sha256(seed + last.to_bytes(4, "big")).digest()
        other = int.from_bytes(digest[:16], "big") % (last + 1)
        out[last], out[other] = out[other], out[last]
    return out


def williams_row(size: int, row: int) -> list[int]:
    """Row `row` of a Williams square of `size`: `size` rows when even, 2 x `size` when odd (the
    second half is mirrored).
    """
    zigzag = [(step + 1) // 2 if step % 2 else (size - step // 2) % size for step in range(size)]
    order = [(place + row) % size for place in zigzag]
    return order[::-1] if size % 2 and (row // size) % 2 else order


def layouts(kind: str, systems: int) -> list[tuple[int, ...]]:
    """The ways to lay `systems` clips out in one trial; each must come equally often."""
    if kind == "ab":
        return [(0, 1), (1, 0)]
    if kind == "abx":
        return [(0, 1, 0), (0, 1, 1), (1, 0, 0), (1, 0, 1)]
    return [tuple((place + row) % systems for place in range(systems)) for row in range(systems)]


def labels(kind: str, count: int) -> list[str]:
    """The letters of a trial's clips."""
    return ["A", "B", "X"] if kind == "abx" else list(ascii_uppercase[:count])


def _cells(study: Study, number: int) -> list[tuple[Item, int, int]]:
    """The (item, condition, repeat) cells of listener `number` in the order they are met."""
    items, conditions = list(study.scored), len(study.conditions)
    rows = len(items) if len(items) % 2 == 0 else 2 * len(items)
    start = shuffled(range(conditions), study.seed, "conditions")
    cells = []
    turns = study.passes or conditions
    for turn in range(turns * study.repeats):
        named = shuffled(items, study.seed, "items", turn, number // rows)
        for place in williams_row(len(items), number % rows):
            item = named[place]
            condition = start[(items.index(item) + turn % turns + number) % conditions]
            cells.append((item, condition, turn // turns))
    return cells


@lru_cache(maxsize=256)
def _plan(study_id: str, number: int, holder: _Holder) -> tuple[Trial, ...]:
    study = holder.study
    conditions = study.conditions
    whole = (study.passes or len(conditions)) == len(conditions)
    group, visit = (0, number) if whole else (number % len(conditions), number // len(conditions))
    ways = layouts(study.kind, len(conditions[0]))
    cells = _cells(study, number)
    canonical = sorted((item.name, condition, repeat) for item, condition, repeat in cells)
    ranks = {
        cell: rank
        for rank, cell in enumerate(
            shuffled(canonical, study.seed, "layout", group, visit // len(ways))
        )
    }
    practice = [
        (item, (place + number) % len(conditions), 0)
        for place, item in enumerate(item for item in study.items if item.practice)
    ]
    trials = []
    for index, (item, condition, repeat) in enumerate(practice + cells):
        rank = ranks.get((item.name, condition, repeat), index)
        way = ways[(rank + visit) % len(ways)]
        names = [conditions[condition][place] for place in way]
        slots = tuple(map(Slot, labels(study.kind, len(way)), names))
        if study.kind == "mushra" and study.reference is not None:
            slots = (Slot("R", study.reference), *slots)
        trials.append(Trial(index, item.name, item.practice, slots))
    return tuple(trials)


class _Holder:
    """Carries a study through the cache: equal when the definitions that shape a plan are equal."""

    def __init__(self, study: Study) -> None:
        self.study = study
        items = tuple((item.name, item.practice) for item in study.items)
        self.key = (
            study.kind,
            study.repeats,
            study.seed,
            study.passes,
            study.systems,
            study.pairs,
            study.reference,
            items,
        )

    def __hash__(self) -> int:
        return hash(self.key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Holder) and self.key == other.key


def plan(study: Study, number: int) -> tuple[Trial, ...]:
    """All trials of the listener who joined as number `number` (0, 1, ...), practice first."""
    return _plan(study.id, number, _Holder(study))
