"""Nearest speech codes of a code, for the rules that relax acceptance over a neighbourhood."""

from __future__ import annotations

import torch
from torch import Tensor

from pcg.errors import PcgError


class Neighbours:
    """The k nearest codes of each code by distance of unit-length embeddings, itself excluded.

    Unit length makes the order that of the cosine, the scale theta is on, and bounds a distance by
    2. A code's neighbours are found when first asked for, at the cost of one matrix-vector product.
    """

    def __init__(self, embeddings: Tensor, count: int) -> None:
        if embeddings.ndim != 2 or not 1 <= count < len(embeddings):
            raise PcgError(f"{count} neighbours need a table of more than {count} code embeddings.")
        norms = embeddings.float().norm(dim=1, keepdim=True)
        self.unit = embeddings.float() / norms.clamp(min=1e-30)
        self.count = count
        self._found: dict[int, Tensor] = {}

    def of(self, token: int) -> Tensor:
        """(k,) int64, nearest first; empty for an id that is not a speech code."""
        if token >= len(self.unit):
            return torch.zeros(0, dtype=torch.int64)
        if token not in self._found:
            cosines = self.unit @ self.unit[token]
            cosines[token] = -torch.inf
            self._found[token] = cosines.topk(self.count).indices
        return self._found[token]

    def distances(self, token: int, others: Tensor) -> Tensor:
        """Distances (n,) of ids from a code; inf where either is not a speech code."""
        codes = others < len(self.unit)
        result = torch.full(others.shape, torch.inf)
        if token < len(self.unit):
            gaps = self.unit[others[codes]] - self.unit[token]
            result[codes] = gaps.norm(dim=1)
        return result
