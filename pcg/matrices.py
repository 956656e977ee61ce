"""The matrix products of a forward: dense in the activations' type, or packed weights on a CPU.

float16-weights: packed once, widened inside the product, which stays in float32. Half the reading,
and a kernel made for a few rows.

int8: one scale an output row for the weights and one scale a row for the activations, so a row's
result does not depend on the rows beside it: verifying four tokens at once gives what four single
steps give, up to rounding. torch's own dynamic quantisation takes one range a call; two columns of
+1 and -1 beside rows scaled to [-1, 1] pin that range.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from typing import Protocol

import torch
from torch import Tensor
from torch.nn import functional as F

PIN_COLUMNS = 16  # two pin the range; sixteen keep rows aligned
# Smaller products cost more in calls than they save in reading. A size, not a timing, decides:
# the same seed must give the same tokens in the next process.
INT8_FROM = 300_000
PACKED = ("float16-weights", "int8")  # types of weights whose activations stay in float32


class Matrix(Protocol):
    """``y = x W^T``."""

    bytes: int

    def __call__(self, x: Tensor) -> Tensor:
        """``(n, inputs)`` -> ``(n, outputs)``."""
        ...

    def add(self, x: Tensor, residual: Tensor) -> Tensor:
        """``residual + x W^T``."""
        ...


class Dense:
    """A plain product."""

    def __init__(self, weight: Tensor) -> None:
        self.weight, self.turned = weight, weight.t()
        self.bytes = weight.numel() * weight.element_size()

    def __call__(self, x: Tensor) -> Tensor:
        """``(n, inputs)`` -> ``(n, outputs)``."""
        return F.linear(x, self.weight)

    def add(self, x: Tensor, residual: Tensor) -> Tensor:
        """``residual + x W^T`` in one call."""
        return torch.addmm(residual, x, self.turned)


class Int8:
    """Weights in int8, one scale an output row; activations in 8 bits, one scale a row."""

    def __init__(self, weight: Tensor) -> None:
        self.inputs = weight.shape[1]
        self.bytes = weight.numel() + 4 * weight.shape[0]
        wide = F.pad(weight.detach().float(), (0, PIN_COLUMNS))
        scales = wide.abs().amax(1).clamp_min(1e-12) / 127
        zeros = torch.zeros(len(wide), dtype=torch.int64)
        with warnings.catch_warnings():  # torch announces another quantiser for a later release
            warnings.simplefilter("ignore")
            quantised = torch.quantize_per_channel(wide, scales.double(), zeros, 0, torch.qint8)
        self.packed = torch.ops.quantized.linear_prepack(quantised, None)
        self.multiply = torch.ops.quantized.linear_dynamic
        self.narrow = not _has_vnni()  # without VNNI pairs of products saturate at full range
        self.pins: dict[int, Tensor] = {}

    def __call__(self, x: Tensor) -> Tensor:
        """``(n, inputs)`` -> ``(n, outputs)``."""
        peak = torch.linalg.vector_norm(x, torch.inf, dim=-1, keepdim=True).clamp_min_(1e-12)
        scaled = torch.cat([x / peak, self._pin(x.shape[0])], 1)
        result: Tensor = self.multiply(scaled, self.packed, self.narrow)
        return result.mul_(peak)

    def add(self, x: Tensor, residual: Tensor) -> Tensor:
        """``residual + x W^T``."""
        return self(x).add_(residual)

    def _pin(self, rows: int) -> Tensor:
        pin = self.pins.get(rows)
        if pin is None:
            pin = torch.zeros(rows, PIN_COLUMNS)
            pin[:, 0], pin[:, 1] = 1.0, -1.0
            if rows <= 32:
                self.pins[rows] = pin
        return pin


class HalfWeights:
    """Weights in float16, activations and sums in float32; FBGEMM's packed product."""

    def __init__(self, weight: Tensor) -> None:
        self.bytes = 2 * weight.numel()
        rows = weight.detach().float().contiguous()
        # The direct call costs a few microseconds where the quantised operator costs twenty. torch
        # means to drop it one day: the operator with the same kernel then takes its place.
        self.direct = hasattr(torch, "fbgemm_linear_fp16_weight_fp32_activation")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if self.direct:
                self.packed = torch.fbgemm_pack_gemm_matrix_fp16(rows)
                self(rows[:1])  # its one announcement is made here, unheard
            else:
                self.packed = torch.ops.quantized.linear_prepack_fp16(rows, None)

    def __call__(self, x: Tensor) -> Tensor:
        """``(n, inputs)`` -> ``(n, outputs)``."""
        if self.direct:
            result: Tensor = torch.fbgemm_linear_fp16_weight_fp32_activation(x, self.packed, None)
        else:
            result = torch.ops.quantized.linear_dynamic_fp16(x, self.packed)
        return result

    def add(self, x: Tensor, residual: Tensor) -> Tensor:
        """``residual + x W^T``."""
        return self(x).add_(residual)


def packing_works(kind: str) -> bool:
    """Whether this torch and CPU have the product of a type of :data:`PACKED`, and it is right."""
    weight, x = torch.linspace(-1, 1, 64).reshape(2, 32), torch.linspace(-1, 1, 32)[None]
    try:
        made: Matrix = HalfWeights(weight) if kind == "float16-weights" else Int8(weight)
        return bool(torch.allclose(made(x), x @ weight.T, atol=0.3))
    except (AttributeError, NotImplementedError, RuntimeError, TypeError):
        return False


def make_matrix(weight: Tensor, packing: str = "") -> Matrix:
    """Dense, or packed as a type of :data:`PACKED` says; int8 from ``INT8_FROM`` weights on."""
    if packing == "float16-weights":
        return HalfWeights(weight)
    if packing == "int8" and weight.numel() >= INT8_FROM:
        return Int8(weight)
    return Dense(weight)


@torch.inference_mode()
def best_seconds(call: Callable[[], object], repeats: int = 15) -> float:
    """The least of some timings of a call, in seconds, after one that is not counted."""
    call()
    best = float("inf")
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        best = min(best, time.perf_counter() - start)
    return best


def _has_vnni() -> bool:
    probe = getattr(torch.cpu, "_is_vnni_supported", None) or getattr(
        torch.cpu, "_is_avx512_vnni_supported", None
    )
    return bool(probe()) if probe else False
