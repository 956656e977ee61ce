"""Logits to probabilities, in one place, and draws from an explicit generator.

Draft and target use the same :class:`Sampling`, in float32, so that the ratio of an acceptance
rule compares the very rows that tokens were drawn from.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pcg.errors import PcgError

_PARTIAL_TOP_P = 1024


@dataclass(frozen=True)
class Sampling:
    """How a row of logits becomes probabilities.

    ``temperature`` >= 0 (0 is greedy), ``top_k`` >= 0 (0 is off), ``top_p`` in (0, 1].

    Raises:
        PcgError: for a value out of range.
    """

    temperature: float = 0.8
    top_k: int = 0
    top_p: float = 1.0

    def __post_init__(self) -> None:
        if not (math.isfinite(self.temperature) and 0 <= self.temperature <= 10):
            raise PcgError("The temperature must be between 0 (greedy) and 10.")
        if self.top_k < 0 or int(self.top_k) != self.top_k:
            raise PcgError("top-k must be a whole number, 0 (off) or more.")
        if not 0 < self.top_p <= 1:
            raise PcgError("top-p must be above 0 and at most 1 (off).")


def logits_to_probs(logits: Tensor, sampling: Sampling) -> Tensor:
    """Logits ``(..., V)`` of any float type -> probabilities ``(..., V)`` float32, rows sum to 1.

    Temperature first, then top-k, then top-p over what is left. Temperature 0 gives one-hot rows.

    Raises:
        PcgError: when a row holds NaN, +inf, or no finite logit.
    """
    rows = logits.float()
    top = rows.amax(-1, keepdim=True)  # NaN where a row holds one
    if not all(map(math.isfinite, top.flatten().tolist())):
        raise PcgError(
            "The model returned logits that are not numbers: load it in float32 or bfloat16."
        )
    if sampling.temperature == 0:
        return torch.zeros_like(rows).scatter_(-1, rows.argmax(-1, keepdim=True), 1.0)
    rows = (rows - top).div_(sampling.temperature)
    if 0 < sampling.top_k < rows.shape[-1]:
        kept = rows.topk(sampling.top_k, dim=-1)
        rows = torch.full_like(rows, -torch.inf).scatter_(-1, kept.indices, kept.values)
    probs = rows.softmax(-1)
    return _nucleus(probs, sampling.top_p) if sampling.top_p < 1 else probs


def _nucleus(probs: Tensor, top_p: float) -> Tensor:
    """The fewest most probable ids whose mass reaches ``top_p``; a full sort only if it must."""
    for count in (min(_PARTIAL_TOP_P, probs.shape[-1]), probs.shape[-1]):
        values, indices = probs.topk(count, dim=-1)
        reached = values.cumsum(-1)
        if bool((reached[..., -1] >= top_p).all()):
            break
    kept = torch.where(reached - values < top_p, values, torch.zeros_like(values))
    kept = kept / kept.sum(-1, keepdim=True)
    return torch.zeros_like(probs).scatter_(-1, indices, kept)


def pick(weights: Tensor, points: Tensor) -> Tensor:
    """Ids ``(..., n)`` int64 at ``points`` ``(..., n)`` in [0, 1) of the rows ``(..., V)``.

    Inverse of the cumulative sum in float64: a uniform point gives an id in proportion to its
    weight, which need not sum to 1. An id of weight zero is never returned.
    """
    edges = weights.cumsum(-1, dtype=torch.float64)
    ids = torch.searchsorted(edges, points * edges[..., -1:], right=True)
    ids = ids.clamp_(max=weights.shape[-1] - 1)
    impossible = weights.gather(-1, ids) <= 0
    if bool(impossible.any()):  # rounding at a row's end
        ids = torch.where(impossible, weights.argmax(-1, keepdim=True), ids)
    return ids


def pick_from_row(weights: Tensor, points: list[float]) -> NDArray[np.int64]:
    """:func:`pick` for one row ``(V,)`` on the CPU: the same ids ``(n,)``, sooner."""
    row = weights.numpy()
    edges = row.cumsum(dtype=np.float64)
    ids = edges.searchsorted(np.asarray(points) * edges[-1], side="right")
    ids = np.minimum(ids, len(row) - 1)
    impossible = row[ids] <= 0
    if impossible.any():  # rounding at a row's end
        ids[impossible] = row.argmax()
    return ids


def draw(probs: Tensor, generator: torch.Generator) -> Tensor:
    """One id ``(...,)`` int64 for each row of ``probs`` ``(..., V)``, never of probability zero."""
    points = torch.rand(
        (*probs.shape[:-1], 1), generator=generator, device=generator.device, dtype=torch.float64
    )
    return pick(probs, points.to(probs.device)).squeeze(-1)
