"""What may be answered in each kind of test, and the rows an answer becomes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from pcg.errors import PcgError
from pcg.listening.plan import Slot
from pcg.listening.study import Study


def check_answer(study: Study, slots: Sequence[Slot], answer: Mapping[str, Any]) -> dict[str, Any]:
    """The answer in its one stored form, or `PcgError` when it does not fit the trial."""
    if study.kind in ("ab", "abx"):
        allowed = ["A", "B"] + (["tie"] if study.kind == "ab" and study.allow_tie else [])
        if set(answer) != {"choice"} or answer["choice"] not in allowed:
            raise PcgError(f"The answer must be one of {', '.join(allowed)}.")
        return {"choice": answer["choice"]}
    if study.kind == "mos":
        score: Any = answer.get("score") if set(answer) == {"score"} else None
        if not _number(score) or not 1 <= score <= 5 or (2 * score) % 1:
            raise PcgError("The answer must be a score from 1 to 5 in steps of one half.")
        return {"score": float(score)}
    wanted = [slot.label for slot in slots if slot.label != "R"]
    scores = answer.get("scores") if set(answer) == {"scores"} else None
    if not isinstance(scores, Mapping) or set(scores) != set(wanted):
        raise PcgError(f"The answer must score {', '.join(wanted)}.")
    if not all(_number(value) and 0 <= value <= 100 for value in scores.values()):
        raise PcgError("Every score must lie between 0 and 100.")
    return {"scores": {label: float(scores[label]) for label in wanted}}


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def rows_of(kind: str, slots: Mapping[str, str], answer: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Flat rows of one vote. `slots`: letter -> system.

    mos, mushra: {system, score}; ab: {left, right, chosen, outcome 1 | 0 | 0.5 for left, side};
    abx: {left, right, x, correct}.
    """
    if kind == "mos":
        return [{"system": slots["A"], "score": answer["score"]}]
    if kind == "mushra":
        return [
            {"system": slots[label], "score": score} for label, score in answer["scores"].items()
        ]
    left, right, choice = slots["A"], slots["B"], answer["choice"]
    if kind == "abx":
        correct = slots[choice] == slots["X"]
        return [
            {
                "left": left,
                "right": right,
                "x": slots["X"],
                "chosen": slots[choice],
                "side": choice,
                "correct": correct,
            }
        ]
    outcome = {"A": 1.0, "B": 0.0, "tie": 0.5}[choice]
    chosen = "" if choice == "tie" else slots[choice]
    return [{"left": left, "right": right, "chosen": chosen, "side": choice, "outcome": outcome}]
