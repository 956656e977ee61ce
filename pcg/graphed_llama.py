"""The Llama forward for CUDA: fixed buffers, so that a step is one replay of a recorded graph.

A small model on a fast GPU waits for its own launches; a CUDA graph launches a whole step at once.
It needs addresses that never change: one buffer a layer for the whole context, and buffers for
ids, slots and positions. Buffers and their graphs are kept and handed to the next request.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from pcg.llama import Cache, Llama

MAX_ROWS = 17  # the largest lookahead and one


class FixedCache(list[Tensor]):
    """Layer buffers of the whole context, the inputs of each row count and its graph."""

    def __init__(self, layers: Cache) -> None:
        super().__init__(layers)
        self.inputs: dict[int, Tensor] = {}  # rows -> int64 (3, rows): ids, slots, positions
        self.graphs: dict[int, tuple[Any, Tensor]] = {}  # rows -> graph, logits


class GraphedLlama(Llama):
    """As :class:`pcg.llama.Llama`; steps of up to ``MAX_ROWS`` ids replay a graph on CUDA.

    Without CUDA the same fixed-size computation runs directly, which is how it is tested.
    """

    @classmethod
    def of(cls, llama: Llama) -> GraphedLlama:
        """The same weights behind graphs."""
        return cls(
            llama.spec, llama.embedding, llama.layers, llama.head, llama.angles, llama.scaling
        )

    def __init__(self, *parts: Any) -> None:
        super().__init__(*parts)
        self.slots = torch.arange(self.max_positions, device=self.device)
        self._free: list[FixedCache] = []
        self._lock = threading.Lock()

    def new_cache(self, capacity: int) -> FixedCache:
        """A cache for the whole context, used before where one is free."""
        with self._lock:
            if self._free:
                return self._free.pop()
        return FixedCache(super().new_cache(self.max_positions))

    def widened(self, cache: Cache | None, used: int, capacity: int) -> Cache:
        """The same cache: it has room for everything."""
        return cache if cache is not None else self.new_cache(capacity)

    def release(self, cache: Any) -> None:
        """Take a cache back for the next request."""
        if isinstance(cache, FixedCache):
            with self._lock:
                self._free.append(cache)

    @torch.inference_mode()
    def run(
        self,
        ids: Sequence[int],
        positions: Sequence[int] | range,
        cache: Cache,
        start: int,
        last_only: bool = False,
    ) -> Tensor:
        """As :meth:`Llama.run`; prompts go the plain way."""
        count = len(ids)
        if count > MAX_ROWS or last_only or not isinstance(cache, FixedCache):
            return super().run(ids, positions, cache, start, last_only)
        wanted = torch.tensor([list(ids), list(range(start, start + count)), list(positions)])
        if count in cache.inputs:
            cache.inputs[count].copy_(wanted)
        else:
            cache.inputs[count] = wanted.to(self.device)
        if self.device.type != "cuda":
            return self.fixed(cache.inputs[count], cache)
        if count not in cache.graphs:
            cache.graphs[count] = self._record(cache.inputs[count], cache)
        graph, logits = cache.graphs[count]
        graph.replay()
        return logits.clone()

    def _record(self, inputs: Tensor, cache: FixedCache) -> tuple[Any, Tensor]:
        """Record one row count. The rehearsals write what the replay writes, to the same slots."""
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(2):
                self.fixed(inputs, cache)
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            logits = self.fixed(inputs, cache)
        return graph, logits

    def fixed(self, inputs: Tensor, cache: FixedCache) -> Tensor:
        """Logits float32 ``(n, vocabulary)``; shapes depend on ``n`` alone."""
        ids, slots, positions = inputs.unbind(0)
        x = F.embedding(ids, self.embedding)
        turns = self.turns.index_select(0, positions)
        seen = (self.slots[None] <= slots[:, None])[None, None]
        for layer, kv in zip(self.layers, cache):
            x = self._fixed_block(layer, x, turns, kv, slots, seen)
        return self.head(self._normed(x)).float()

    def _fixed_block(
        self, layer: Any, x: Tensor, turns: Tensor, kv: Tensor, slots: Tensor, seen: Tensor
    ) -> Tensor:
        spec, count = self.spec, x.shape[0]
        pairs = layer.qkv(self._normed(x)).view(count, -1, spec.head_dim // 2, 2)
        turned = torch.view_as_real(torch.view_as_complex(pairs.float()) * turns).to(self.dtype)
        turned = turned.view(count, -1, spec.head_dim)
        kv.index_copy_(1, slots, turned[:, spec.heads :].transpose(0, 1))
        mixed = F.scaled_dot_product_attention(
            turned[:, : spec.heads].transpose(0, 1)[None], kv[None, : spec.kv_heads],
            kv[None, spec.kv_heads :], seen, scale=1.0, enable_gqa=True,
        )  # fmt: skip
        x = layer.out.add(mixed[0].transpose(0, 1).reshape(count, -1), x)
        gate, up = layer.gate_up(self._normed(x)).chunk(2, -1)
        return layer.down.add(F.silu(gate) * up, x)
