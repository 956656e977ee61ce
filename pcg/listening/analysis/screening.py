"""Signs that a listener answered carelessly. They are shown; nobody is left out unless the reader
asks for it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy import stats

FAST_SECONDS = 0.8
MIN_VOTES = 8


@dataclass
class Listener:
    """One listener: votes given, median seconds a question, and the flags with their reasons."""

    listener: str
    votes: int
    median_seconds: float
    agreement: float | None = None
    flags: list[str] = field(default_factory=list)


def screen(
    kind: str,
    rows: Sequence[Mapping[str, Any]],
    *,
    reference: str | None = None,
    checks: Mapping[str, tuple[str | None, int | None, int | None]] | None = None,
) -> list[Listener]:
    """Every listener with flags. `rows` as from `export.flat_rows`; `checks`: listener -> (device,
    correct, of).
    """
    by_listener: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for row in rows:
        by_listener[str(row["listener"])].append(row)
    found = []
    for name, mine in sorted(by_listener.items()):
        seconds = {row["trial"]: float(row["seconds"]) for row in mine}
        spare = {row["trial"]: float(row["spare"]) for row in mine}
        person = Listener(name, len(seconds), float(np.median(list(seconds.values()))))
        quick = float(np.mean([value < FAST_SECONDS for value in spare.values()]))
        if len(spare) >= MIN_VOTES and quick > 0.5:
            person.flags.append(
                f"answered {quick:.0%} of questions within {FAST_SECONDS} s of hearing them"
            )
        _flag_answers(kind, person, mine, rows, reference)
        _flag_check(person, (checks or {}).get(name))
        found.append(person)
    return found


def _flag_check(person: Listener, check: tuple[str | None, int | None, int | None] | None) -> None:
    device, correct, of = check or (None, None, None)
    if device == "headphones" and of and correct is not None and correct < of - 1:
        person.flags.append(f"said headphones but heard {correct} of {of} check tones right")


def _flag_answers(
    kind: str,
    person: Listener,
    mine: Sequence[Mapping[str, Any]],
    rows: Sequence[Mapping[str, Any]],
    reference: str | None,
) -> None:
    if kind in ("mos", "mushra"):
        scores = [float(row["score"]) for row in mine]
        if len(scores) >= MIN_VOTES and max(
            scores.count(value) for value in set(scores)
        ) >= 0.9 * len(scores):
            person.flags.append("gave one and the same score nearly always")
        person.agreement = agreement(person.listener, rows)
        if person.agreement is not None and person.agreement < 0.1:
            person.flags.append(
                f"scores do not go with the others' (correlation {person.agreement:.2f})"
            )
    else:
        sides = [str(row["side"]) for row in mine if row["side"] in ("A", "B")]
        first = sides.count("A")
        if len(sides) >= MIN_VOTES and stats.binomtest(first, len(sides), 0.5).pvalue < 0.001:
            person.flags.append(f"chose A in {first} of {len(sides)} questions, whatever it was")
    if kind == "mushra" and reference is not None:
        hidden = [float(row["score"]) < 90 for row in mine if row["system"] == reference]
        if hidden and float(np.mean(hidden)) > 0.15:
            person.flags.append(
                f"scored the hidden reference below 90 in {np.mean(hidden):.0%} of questions"
            )


def agreement(listener: str, rows: Sequence[Mapping[str, Any]]) -> float | None:
    """Pearson correlation of a listener's scores with the mean of all others on the same item and
    system.

    None with fewer than 8 shared clips or no spread.
    """
    others: dict[tuple[str, str], list[float]] = defaultdict(list)
    own: dict[tuple[str, str], float] = {}
    for row in rows:
        cell = (str(row["item"]), str(row["system"]))
        if row["listener"] == listener:
            own[cell] = float(row["score"])
        else:
            others[cell].append(float(row["score"]))
    shared = [cell for cell in own if others.get(cell)]
    if len(shared) < MIN_VOTES:
        return None
    mine = np.array([own[cell] for cell in shared])
    theirs = np.array([np.mean(others[cell]) for cell in shared])
    if mine.std() < 1e-9 or theirs.std() < 1e-9:
        return None
    return float(np.corrcoef(mine, theirs)[0, 1])
