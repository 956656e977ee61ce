"""Packed products against the plain one."""

import pytest
import torch

from pcg import matrices


@pytest.fixture
def case():
    generator = torch.Generator().manual_seed(0)
    weight = torch.randn(96, 64, generator=generator) * 0.1
    return weight, torch.randn(5, 64, generator=generator), torch.randn(5, 96, generator=generator)


def test_float16_weights_are_the_product_of_the_rounded_weights(case):
    weight, x, residual = case
    made = matrices.HalfWeights(weight)
    wanted = x @ weight.half().float().T
    assert torch.allclose(made(x), wanted, atol=1e-5)
    assert torch.allclose(made.add(x, residual), residual + wanted, atol=1e-5)
    assert made.bytes == 2 * weight.numel()


def test_float16_weights_give_a_row_the_same_result_alone_and_in_company(case):
    weight, x, _ = case
    made = matrices.HalfWeights(weight)
    alone = torch.cat([made(row[None]) for row in x])
    assert torch.allclose(made(x), alone, atol=1e-6)


def test_without_the_direct_call_the_operator_takes_its_place(case, monkeypatch):
    weight, x, _ = case
    direct = matrices.HalfWeights(weight)(x)
    monkeypatch.delattr(torch, "fbgemm_linear_fp16_weight_fp32_activation")
    made = matrices.HalfWeights(weight)
    assert not made.direct
    assert torch.allclose(made(x), direct, atol=1e-5)
    assert matrices.packing_works("float16-weights")


@pytest.mark.parametrize("kind", matrices.PACKED)
def test_a_type_without_its_operator_does_not_work(kind, monkeypatch):
    assert matrices.packing_works(kind)

    def refuse(*_args):
        raise RuntimeError("no kernel")

    monkeypatch.setattr(matrices.HalfWeights, "__call__", refuse)
    monkeypatch.setattr(matrices.Int8, "__call__", refuse)
    assert not matrices.packing_works(kind)
