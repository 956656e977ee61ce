"""A Llama forward for one short utterance at a time: few calls a layer, a cache by position.

Against transformers' forward it fuses q, k and v, and gate and up; folds the norm weights and the
attention scale into the matrices; turns by one complex product; adds the residual inside the
matrix product; and writes keys and values of a layer with one copy. Row ``i`` of a call sees every
earlier position of the cache, whatever its rotary position is: plain causal attention over ids.
Architecture: Llama, arXiv 2302.13971; grouped queries, arXiv 2305.13245; RoPE, arXiv 2104.09864.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from pcg.matrices import INT8_FROM, Matrix, make_matrix

Cache = list[Tensor]  # a layer each: (2 * kv_heads, capacity, head_dim), keys then values
MASK_ROWS = 32  # masks of calls up to this many rows are kept


@dataclass(frozen=True)
class LlamaSpec:
    """Shape of a Llama; ``eps`` is the norm's."""

    width: int
    heads: int
    kv_heads: int
    head_dim: int
    eps: float

    @classmethod
    def of(cls, config: Mapping[str, Any]) -> LlamaSpec:
        """The shape that a Llama's ``config.json`` gives."""
        heads = config["num_attention_heads"]
        head_dim = config.get("head_dim") or config["hidden_size"] // heads
        return cls(
            config["hidden_size"], heads, config["num_key_value_heads"], head_dim,
            config["rms_norm_eps"],
        )  # fmt: skip


@dataclass
class Layer:
    """One block; the norms are folded into the matrices."""

    qkv: Matrix
    out: Matrix
    gate_up: Matrix
    down: Matrix


@lru_cache(maxsize=64)
def _right_aligned_mask(rows: int, repeat: int, columns: int, device: str) -> Tensor:
    """``(1, rows * repeat, columns)``: 0 where a row may look, for a call whose last column is its
    own last row; each row comes ``repeat`` times. Slices from the right give the mask of any
    shorter cache."""
    allowed = torch.ones(rows, columns, dtype=torch.bool, device=device).tril(columns - rows)
    mask = torch.zeros(rows, columns, device=device).masked_fill_(~allowed, float("-inf"))
    return mask.repeat_interleave(repeat, 0)[None]


class Llama:
    """Weights of a Llama and its forward. Thread-safe: a call changes nothing but its cache.

    Args:
        spec: the shape.
        embedding: ``(ids, width)`` input table.
        layers: the blocks, in order.
        head: scores the vocabulary; its norm is folded in.
        angles: ``(positions, head_dim / 2)`` rotary angles, float32.
        scaling: factor of the rotary embedding, 1 for plain RoPE.
    """

    def __init__(
        self,
        spec: LlamaSpec,
        embedding: Tensor,
        layers: Sequence[Layer],
        head: Matrix,
        angles: Tensor,
        scaling: float = 1.0,
    ) -> None:
        self.spec, self.embedding, self.layers, self.head = spec, embedding, list(layers), head
        self.angles, self.scaling = angles, scaling
        self.dtype, self.device = embedding.dtype, embedding.device
        self.max_positions = len(angles)
        self.group = spec.heads // spec.kv_heads
        turned = torch.polar(torch.full_like(angles, scaling), angles)
        turns = turned[:, None].expand(-1, spec.heads + spec.kv_heads, -1)
        still = torch.ones_like(turned)[:, None].expand(-1, spec.kv_heads, -1)
        self.turns = torch.cat([turns, still], 1)  # (positions, heads + 2 kv_heads, head_dim / 2)
        # hypot(norm, root) / sqrt(width) is the root mean square with eps; sqrt(width) is folded.
        self.root = torch.tensor((spec.width * spec.eps) ** 0.5, device=self.device)
        self.lean = self.dtype == torch.float32

    def with_layers(self, indices: Sequence[int]) -> Llama:
        """The same weights, only these layers, in this order."""
        layers = [self.layers[i] for i in indices]
        parts = (self.spec, self.embedding, layers, self.head, self.angles, self.scaling)
        return type(self)(*parts)

    def new_cache(self, capacity: int) -> Cache:
        """An empty cache for ``capacity`` ids."""
        shape = (2 * self.spec.kv_heads, capacity, self.spec.head_dim)
        return [torch.zeros(shape, dtype=self.dtype, device=self.device) for _ in self.layers]

    def widened(self, cache: Cache | None, used: int, capacity: int) -> Cache:
        """A cache for ``capacity`` ids with the ``used`` first ones of ``cache``."""
        wider = self.new_cache(capacity)
        for new, old in zip(wider, cache or []):
            new[:, :used] = old[:, :used]
        return wider

    def release(self, cache: Any) -> None:
        """A request is over; nothing is kept of its cache."""

    def large_share(self) -> float:
        """Share of the weights that lie in matrices large enough for int8."""
        matrices = [m for x in self.layers for m in (x.qkv, x.out, x.gate_up, x.down)]
        sizes = [m.bytes // self.embedding.element_size() for m in [*matrices, self.head]]
        return sum(size for size in sizes if size >= INT8_FROM) / sum(sizes)

    def bytes(self) -> int:
        """Memory of the weights in bytes; a table shared by input and head is counted twice."""
        matrices = [m for x in self.layers for m in (x.qkv, x.out, x.gate_up, x.down)]
        held = sum(m.bytes for m in [*matrices, self.head])
        return held + self.embedding.numel() * self.embedding.element_size()

    @torch.inference_mode()
    def run(
        self,
        ids: Sequence[int],
        positions: Sequence[int] | range,
        cache: Cache,
        start: int,
        last_only: bool = False,
    ) -> Tensor:
        """Logits float32 ``(n, vocabulary)`` of ``n`` ids (``(1, vocabulary)`` if ``last_only``).

        Args:
            ids: model ids, appended to the cache at slots ``start..start + n - 1``.
            positions: rotary position of each id; a ``range`` where they rise by one.
            cache: as made by :meth:`new_cache`, with room for ``start + n`` ids.
            start: how many slots of the cache are in use.
        """
        count = len(ids)
        x = F.embedding(torch.tensor(ids, device=self.device), self.embedding)
        if isinstance(positions, range):
            turns = self.turns[positions.start : positions.stop]
        else:
            turns = self.turns[torch.tensor(positions, device=self.device)]
        mask = self._mask(count, start + count, cache) if count > 1 else None
        for layer, kv in zip(self.layers, cache):
            x = self._block(layer, x, turns, kv, start, mask)
        if last_only:
            x = x[-1:]
        return self.head(self._normed(x)).float()

    def _mask(self, count: int, end: int, cache: Cache) -> Tensor:
        columns = cache[0].shape[1] if count <= MASK_ROWS else end
        make = _right_aligned_mask if count <= MASK_ROWS else _right_aligned_mask.__wrapped__
        mask = make(count, self.group if self.lean else 1, columns, str(self.device))
        return mask[:, :, columns - end :]

    def _block(
        self, layer: Layer, x: Tensor, turns: Tensor, kv: Tensor, start: int, mask: Tensor | None
    ) -> Tensor:
        spec, count = self.spec, x.shape[0]
        end, heads = start + count, spec.heads
        qkv = layer.qkv(self._normed(x)).view(count, -1, spec.head_dim // 2, 2)
        if self.lean:
            turned = torch.view_as_real(torch.view_as_complex(qkv) * turns)
        else:
            turned = torch.view_as_real(torch.view_as_complex(qkv.float()) * turns).to(self.dtype)
        turned = turned.view(count, -1, spec.head_dim)
        kv[:, start:end] = turned[:, heads:].transpose(0, 1)
        keys, values = kv[: spec.kv_heads, :end], kv[spec.kv_heads :, :end]
        attend = self._attend_lean if self.lean else self._attend
        x = layer.out.add(attend(turned[:, :heads], keys, values, mask), x)
        gate, up = layer.gate_up(self._normed(x)).chunk(2, -1)
        return layer.down.add(F.silu(gate) * up, x)

    def _normed(self, x: Tensor) -> Tensor:
        """``x`` over its root mean square, and over sqrt(width), which the matrices make good."""
        if self.lean:
            length = torch.linalg.vector_norm(x, dim=-1, keepdim=True)
            return x / torch.hypot(length, self.root)
        return F.rms_norm(x, (self.spec.width,), None, self.spec.eps)

    def _attend_lean(self, query: Tensor, keys: Tensor, values: Tensor, mask: Any) -> Tensor:
        """Two small products; on a CPU quicker than the fused kernel for a few rows.

        The queries that share a key head are rows of one product, so that with one key head
        nothing is copied.
        """
        count, spec = query.shape[0], self.spec
        query = query.view(count, spec.kv_heads, self.group, spec.head_dim).transpose(0, 1)
        query = query.reshape(spec.kv_heads, count * self.group, spec.head_dim)
        if mask is None:
            scores = torch.bmm(query, keys.transpose(1, 2))
        else:
            scores = torch.baddbmm(mask, query, keys.transpose(1, 2))
        mixed = torch.bmm(scores.softmax(-1), values)
        mixed = mixed.view(spec.kv_heads, count, self.group, spec.head_dim).transpose(0, 1)
        return mixed.reshape(count, -1)

    def _attend(self, query: Tensor, keys: Tensor, values: Tensor, mask: Any) -> Tensor:
        """torch's attention, which keeps float32 inside for half precision."""
        count = query.shape[0]
        shaped = None if mask is None else mask[None].to(self.dtype)
        mixed = F.scaled_dot_product_attention(
            query.transpose(0, 1)[None],
            keys[None],
            values[None],
            shaped,
            scale=1.0,
            enable_gqa=True,
        )
        return mixed[0].transpose(0, 1).reshape(count, -1)


def interleaved(weight: Tensor, head_dim: int) -> Tensor:
    """Rows of a q or k projection from half-split to interleaved pairs, as complex numbers need."""
    heads = weight.shape[0] // head_dim
    return weight.view(heads, 2, head_dim // 2, -1).transpose(1, 2).reshape(weight.shape)


def from_weights(
    spec: LlamaSpec,
    embedding: Tensor,
    blocks: Iterable[Mapping[str, Tensor]],
    norm: Tensor,
    head: Tensor,
    frequencies: Tensor,
    *,
    scaling: float = 1.0,
    head_rows: Sequence[int] | None,
    dtype: torch.dtype,
    device: torch.device,
    packing: str,
    max_positions: int,
) -> Llama:
    """A :class:`Llama` of weights as ``LlamaForCausalLM`` names them.

    Args:
        spec: the shape.
        embedding, norm, head: ``(ids, width)`` input table, last norm, ``(ids, width)`` head.
        blocks: for each layer its weights by name, such as ``mlp.up_proj.weight``; read once.
        frequencies: ``(head_dim / 2,)`` rotary frequencies.
        scaling: factor of the rotary embedding.
        head_rows: ids whose scores are wanted, in this order; None for all.
        dtype, device: of the activations.
        packing: "", or a type of :data:`pcg.matrices.PACKED` for the matrices (CPU only).
        max_positions: length of the rotary table.
    """
    gain = spec.width**0.5 if dtype == torch.float32 else 1.0

    def matrix(weight: Tensor, before: Tensor | None = None) -> Matrix:
        folded = weight.float() if before is None else weight.float() * (before.float() * gain)
        return make_matrix(folded.to(device=device, dtype=dtype).contiguous(), packing)

    with torch.no_grad():
        angles = torch.outer(torch.arange(max_positions).float(), frequencies.float().cpu())
        scored = matrix(head if head_rows is None else head[list(head_rows)], norm)
        table = embedding.detach().to(device=device, dtype=dtype)
        layers = [_take_layer(weights, spec.head_dim, matrix) for weights in blocks]
    return Llama(spec, table, layers, scored, angles.to(device), scaling)


def from_transformers(model: Any, max_positions: int, **how: Any) -> Llama:
    """Take over the weights of a ``LlamaForCausalLM``; its layers are emptied one by one.

    Args:
        model: in eval mode, on the CPU.
        max_positions: length of the rotary table.
        how: ``head_rows``, ``dtype``, ``device`` and ``packing`` of :func:`from_weights`.
    """
    body = model.model
    rotary = body.rotary_emb
    return from_weights(
        LlamaSpec.of(model.config.to_dict()),
        body.embed_tokens.weight,
        _emptied(body),
        body.norm.weight,
        model.lm_head.weight,
        rotary.inv_freq,
        scaling=float(getattr(rotary, "attention_scaling", 1.0)),
        max_positions=max_positions,
        **how,
    )


def _emptied(body: Any) -> Iterator[dict[str, Tensor]]:
    for index, block in enumerate(body.layers):
        yield block.state_dict()
        body.layers[index] = torch.nn.Identity()


def _take_layer(weights: Mapping[str, Tensor], head_dim: int, matrix: Any) -> Layer:
    def weight(name: str) -> Tensor:
        return weights[f"{name}.weight"]

    query = interleaved(weight("self_attn.q_proj").float(), head_dim) * head_dim**-0.5
    key = interleaved(weight("self_attn.k_proj").float(), head_dim)
    qkv = torch.cat([query, key, weight("self_attn.v_proj").float()])
    gate_up = torch.cat([weight("mlp.gate_proj"), weight("mlp.up_proj")])
    return Layer(
        matrix(qkv, weight("input_layernorm")),
        matrix(weight("self_attn.o_proj")),
        matrix(gate_up, weight("post_attention_layernorm")),
        matrix(weight("mlp.down_proj")),
    )
