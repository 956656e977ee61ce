"""Orders are balanced over listeners and inside each, and come from the seed alone."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import pytest

from pcg.listening.plan import layouts, plan, shuffled, williams_row
from pcg.listening.study import Clip, Item, Study


def make(kind: str, items: int, systems: int, **rules: object) -> Study:
    names = tuple("abcdef"[:systems])
    clips = {name: Clip("0" * 16 + ".wav", 1.0) for name in names}
    rules.setdefault("reference", "a" if kind == "mushra" else None)
    rows = tuple(Item(f"i{k}", clips, practice=k == 0) for k in range(items + 1))
    return Study(kind, "t", names, rows, **rules)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("kind", "items", "systems", "passes", "listeners"),
    [("ab", 6, 3, None, 12), ("ab", 6, 3, 1, 12), ("abx", 8, 2, None, 16), ("abx", 6, 3, 1, 36),
     ("mos", 5, 4, None, 20), ("mos", 6, 3, 1, 12), ("mushra", 4, 4, None, 16)],
)  # fmt: skip
def test_every_layout_of_every_item_comes_equally_often(kind, items, systems, passes, listeners):
    study = make(kind, items, systems, passes=passes)
    seen = Counter(
        (trial.item, tuple(slot.system for slot in trial.slots))
        for number in range(listeners)
        for trial in plan(study, number)
        if not trial.practice
    )
    assert len(set(seen.values())) == 1
    assert len(seen) == items * len(study.conditions) * len(layouts(kind, len(study.conditions[0])))


def test_repeats_of_one_item_are_balanced_too():
    study = make("abx", 1, 2, repeats=16)
    trials = [trial for trial in plan(study, 0) if not trial.practice]
    seen = Counter(tuple(slot.system for slot in trial.slots) for trial in trials)
    assert len(trials) == 16 and set(seen.values()) == {4}


@pytest.mark.parametrize("kind", ["ab", "abx"])
def test_one_listener_meets_every_layout_equally_often(kind):
    study = make(kind, 8, 2)
    for number in range(20):
        seen = Counter(
            tuple(s.system for s in t.slots) for t in plan(study, number) if not t.practice
        )
        assert max(seen.values()) - min(seen.values()) == 0


def test_abx_answers_cannot_be_guessed_from_their_order():
    study = make("abx", 40, 2)
    runs = {
        "".join("A" if t.slots[2].system == t.slots[0].system else "B" for t in plan(study, n))
        for n in range(50)
    }
    assert len(runs) == 50


def test_latin_square_gives_each_listener_each_item_once():
    study = make("mos", 6, 3, passes=1)
    for number in range(9):
        trials = [trial for trial in plan(study, number) if not trial.practice]
        assert sorted(trial.item for trial in trials) == [f"i{k}" for k in range(1, 7)]
        assert set(Counter(trial.slots[0].system for trial in trials).values()) == {2}


@pytest.mark.parametrize("size", [2, 4, 5, 7, 10])
def test_williams_square_balances_places_and_neighbours(size):
    rows = [williams_row(size, row) for row in range(size if size % 2 == 0 else 2 * size)]
    assert all(sorted(row) == list(range(size)) for row in rows)
    places = Counter((place, value) for row in rows for place, value in enumerate(row))
    neighbours = Counter(pair for row in rows for pair in pairwise(row))
    assert len(set(places.values())) == 1
    assert len(set(neighbours.values())) == 1 and len(neighbours) == size * (size - 1)


def test_the_seed_decides_and_practice_comes_first():
    study, same, other = (
        make("ab", 9, 2, seed=1),
        make("ab", 9, 2, seed=1),
        make("ab", 9, 2, seed=2),
    )
    assert plan(study, 3) == plan(same, 3)
    assert plan(study, 3) != plan(other, 3)
    assert [trial.practice for trial in plan(study, 0)] == [True] + [False] * 9


def test_the_stream_is_the_same_everywhere():
    assert shuffled(range(8), 7, "x") == [3, 7, 2, 6, 1, 5, 0, 4]
    first = Counter(shuffled(range(4), seed)[0] for seed in range(4000))
    assert all(abs(count - 1000) < 150 for count in first.values())
