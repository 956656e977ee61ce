"""transformers' own forward behind the engine's interface, for architectures pcg does not know."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from pcg.errors import PcgError


class TransformersForward:
    """Any causal language model of transformers, one utterance at a time.

    The cache is a list that holds one ``DynamicCache``; the mask is always given, because jumps
    in ``position_ids`` would otherwise be read as packed sequences.
    """

    def __init__(self, model: Any, head_rows: Sequence[int], max_positions: int) -> None:
        self.model, self.max_positions = model, max_positions
        self.embedding: Tensor = model.get_input_embeddings().weight.detach()
        self.device, self.dtype = self.embedding.device, self.embedding.dtype
        self.rows = torch.tensor(head_rows, device=self.device)

    def bytes(self) -> int:
        """Memory of the weights in bytes."""
        return sum(p.numel() * p.element_size() for p in self.model.parameters())

    def new_cache(self, capacity: int) -> GrowingCache:
        """An empty cache; it grows by itself, ``capacity`` is not needed."""
        return GrowingCache(self.model.config)

    def widened(self, cache: GrowingCache | None, used: int, capacity: int) -> GrowingCache:
        """The same cache: it grows by itself."""
        return cache or self.new_cache(capacity)

    def release(self, cache: Any) -> None:
        """A request is over; nothing is kept of its cache."""

    @torch.inference_mode()
    def run(
        self,
        ids: Sequence[int],
        positions: Sequence[int] | range,
        cache: GrowingCache,
        start: int,
        last_only: bool = False,
    ) -> Tensor:
        """As :meth:`pcg.llama.Llama.run`."""
        cache.rewind(start)
        count = len(ids)
        allowed = torch.ones(count, start + count, dtype=torch.bool, device=self.device)
        low = torch.finfo(self.dtype).min
        mask = torch.zeros(count, start + count, dtype=self.dtype, device=self.device)
        mask.masked_fill_(~allowed.tril(start), low)
        out = self.model(
            input_ids=torch.tensor([list(ids)], device=self.device),
            position_ids=torch.tensor([list(positions)], device=self.device),
            attention_mask=mask[None, None],
            cache=cache.held,
            use_cache=True,
            logits_to_keep=1 if last_only else 0,
        )
        return out.logits[0].index_select(-1, self.rows).float()


class GrowingCache:
    """A ``DynamicCache`` that rewinds when a step starts before its end."""

    def __init__(self, config: Any) -> None:
        from transformers import DynamicCache

        self.held = DynamicCache(config=config)

    def rewind(self, length: int) -> None:
        """Drop what lies behind the first ``length`` ids."""
        extra = self.held.get_seq_length() - length
        if extra < 0:
            raise PcgError("The cache lost ids: start the request again.")
        if extra:
            self.held.crop(-extra)
