"""Weights whose products fit into 16 bits in pairs, for processors without VNNI."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from cohegraph.text import int8


def drawn(rows: int, inputs: int, spread: float, seed: int) -> torch.Tensor:
    """Weights; with a large spread most are small and a few are large."""
    generator = torch.Generator().manual_seed(seed)
    normal = torch.randn(rows, inputs, generator=generator, dtype=torch.float64)
    return (normal.sign() * normal.abs() ** spread).float()


@settings(deadline=None)
@given(st.integers(1, 70), st.integers(1, 33), st.sampled_from([0.01, 1.0, 3.0]), st.integers(0, 2**31))
def test_neighbours_fit_into_16_bits(rows, inputs, spread, seed):
    weight = drawn(rows, inputs, spread, seed)
    whole, scale = int8.quantised_in_pairs(weight)
    assert torch.equal(whole, whole.round())
    assert whole.abs().max() <= 127
    assert ((whole * weight) >= 0).all()
    pairs = whole[:, : inputs // 2 * 2].reshape(rows, -1, 2)
    same = pairs.prod(dim=-1) > 0
    assert (pairs.sum(dim=-1).abs()[same] <= 128).all()
    # A twice as wide step cuts nothing, so no output may have a larger error than that.
    twice = 2 * int8.quantised(weight)[1]
    plain = (weight / twice[:, None]).round() * twice[:, None]
    errors, bounds = ((product - weight).square().sum(dim=1) for product in (whole * scale[:, None], plain))
    assert (errors <= bounds * (1 + 1e-5)).all()


def test_two_large_neighbours_by_hand():
    """In steps of 1, 127 and 127 would both be cut to 64; in steps of 2, 64 stands for 128."""
    whole, scale = int8.quantised_in_pairs(torch.tensor([[127.0, 127.0], [127.0, -127.0], [127.0, 1.0]]))
    assert whole[0].tolist() == [64, 64]
    assert scale.tolist() == [2, 1, 1]
    assert whole[1:].tolist() == [[127, -127], [127, 1]]


@pytest.mark.parametrize("inputs", [1, 2, 63, 64, 257, 385, 386, 576])
def test_bytes_and_floats_give_the_same_products(inputs):
    if not int8._int8_products_pay(True):
        pytest.skip("this processor multiplies whole numbers faster as floats")
    whole, scale = int8.quantised_in_pairs(drawn(65, inputs, 1.0, 0))
    generator = torch.Generator().manual_seed(1)
    shifted = torch.randint(1, 256, (37, inputs), generator=generator, dtype=torch.uint8)
    shifted[0] = 255
    in_bytes = int8._Int8Product(whole, scale)(shifted)
    assert torch.equal(in_bytes, int8._FloatProduct(whole, scale)(shifted))
