"""Where logits become probabilities, and where tokens are drawn from them: the only place.

Draft and target go through the same `Sampling`, in float32, and the ratio of an acceptance rule
uses the very rows the tokens were drawn from.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from pcg.errors import PcgError
from pcg.randomness import RandomSource, as_randomness

_FIRST_NUCLEUS = 512  # ids looked at first for top-p; widened fourfold until the mass is reached


@dataclass(frozen=True)
class Sampling:
    """How logits are shaped before a draw: temperature, then top-k, then top-p.

    temperature >= 0 (0 takes the most likely id), top_k >= 0 (0 keeps all), 0 < top_p <= 1.
    """

    temperature: float = 0.8
    top_k: int = 0
    top_p: float = 1.0

    def __post_init__(self) -> None:
        if not 0.0 <= self.temperature < float("inf"):
            raise PcgError(f"temperature must be 0 or more, not {self.temperature}.")
        if self.top_k != int(self.top_k) or self.top_k < 0:
            raise PcgError(f"top_k must be a whole number, 0 or more, not {self.top_k}.")
        if not 0.0 < self.top_p <= 1.0:
            raise PcgError(f"top_p must lie in (0, 1], not {self.top_p}.")


def logits_to_probs(logits: Tensor, sampling: Sampling) -> Tensor:
    """Probabilities of the next token, float32, each row summing to 1.

    `logits` (..., V) of any float type; -inf forbids an id. Raises `PcgError` for a row with NaN,
    +inf or no allowed id. Top-k keeps exactly k ids; top-p keeps the smallest set of most likely
    ids whose mass reaches top_p, measured after temperature and top-k.
    """
    scores = logits.float()
    peak = scores.amax(-1, keepdim=True)
    if not bool(torch.isfinite(peak).all()):
        raise PcgError("The model returned NaN or infinite logits; check its weights and its type.")
    if sampling.temperature == 0.0:
        return torch.zeros_like(scores).scatter_(-1, scores.argmax(-1, keepdim=True), 1.0)
    scores = (scores - peak).div_(sampling.temperature)
    vocab_size = scores.shape[-1]
    if 0 < sampling.top_k < vocab_size:
        top_scores, ids = scores.topk(sampling.top_k, dim=-1)
        kept = _cut_nucleus(top_scores.softmax(-1), sampling.top_p)
        return torch.zeros_like(scores).scatter_(-1, ids, kept)
    probs = scores.softmax(-1)
    return probs if sampling.top_p == 1.0 else _nucleus(probs, sampling.top_p)


def _nucleus(probs: Tensor, top_p: float) -> Tensor:
    """Top-p of full rows (..., V) by partial sorts, widened until each row reaches its mass."""
    width = min(_FIRST_NUCLEUS, probs.shape[-1])
    while True:
        top, ids = probs.topk(width, dim=-1)
        if width == probs.shape[-1] or bool((top.sum(-1) >= top_p).all()):
            return torch.zeros_like(probs).scatter_(-1, ids, _cut_nucleus(top, top_p))
        width = min(4 * width, probs.shape[-1])


def _cut_nucleus(top: Tensor, top_p: float) -> Tensor:
    """Zero what lies beyond mass top_p in falling rows (..., k), then normalise."""
    before = top.cumsum(-1) - top
    kept = torch.where(before < top_p, top, 0.0) if top_p < 1.0 else top
    return kept / kept.sum(-1, keepdim=True)


def draw(probs: Tensor, generator: torch.Generator | RandomSource) -> Tensor:
    """One id for each row of `probs` (..., V), int64 (...,), never one of zero probability."""
    source = as_randomness(generator)
    rows = probs.reshape(-1, probs.shape[-1])
    ids = [source.categorical(row)[0] for row in rows]
    return torch.tensor(ids, dtype=torch.int64).reshape(probs.shape[:-1])
