"""The loop that every rule without group draws shares: judge in order, stop at a rejection."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from pcg.acceptance.rule import (
    Judgement,
    Verdict,
    check_rows,
    draw_from,
    positive_part,
    safe_ratio,
)
from pcg.randomness import Randomness, as_randomness

Threshold = Callable[[int, int], tuple[float, float]]
Residual = Callable[[int, int], tuple[Tensor, str]]


def judge_by_threshold(
    draft_ids: Sequence[int],
    draft_probs: Tensor,
    target_probs: Tensor,
    source: torch.Generator | Randomness,
    threshold: Threshold,
    residual: Residual | None = None,
) -> Verdict:
    """Accepts token x at position i while ``u * right < left``; ``threshold(i, x)`` gives both.

    ``residual(i, x)`` gives the row to draw from after a rejection; ``norm (Q - P)+`` by default.
    """
    check_rows(draft_ids, draft_probs, target_probs)
    randomness = as_randomness(source)
    judged: list[Judgement] = []
    for place, token in enumerate(draft_ids):
        draft, target = float(draft_probs[place, token]), float(target_probs[place, token])
        left, right = threshold(place, token)
        u, accepted = randomness.passes(left, right)
        exact = u * draft < target
        ratio = safe_ratio(left, right)
        judged.append(
            Judgement(
                place,
                token,
                draft,
                target,
                u,
                ratio,
                accepted,
                exact,
                explain(accepted, exact, u, ratio),
            )
        )
        if not accepted:
            row, kind = (
                residual(place, token)
                if residual
                else positive_part(target_probs[place], draft_probs[place])
            )
            return Verdict(
                tuple(judged), place, **draw_from(row, target_probs[place], randomness, kind)
            )
    last = draw_from(target_probs[-1], target_probs[-1], randomness, "bonus")
    return Verdict(tuple(judged), len(judged), **last)


def explain(accepted: bool, exact: bool, u: float, ratio: float) -> str:
    """One sentence for a reader."""
    shown = "no limit" if ratio == float("inf") else f"{ratio:.3g}"
    if accepted and exact:
        return f"Accepted: u = {u:.3f} is below {shown}; exact matching accepts it too."
    if accepted:
        return f"Accepted by this rule only: u = {u:.3f} is below {shown}, exact matching rejects."
    return f"Rejected: u = {u:.3f} is not below {shown}."
