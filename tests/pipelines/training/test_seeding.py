"""A step's random numbers are those of torch.manual_seed."""

from __future__ import annotations

import torch

from pipelines.training.loop.seeding import seed_generators


def test_the_generator_is_where_torch_would_put_it() -> None:
    torch.manual_seed(2**62 + 1)
    expected = torch.get_rng_state()
    torch.rand(3)
    seed_generators(2**62 + 1, torch.device("cpu"))
    assert torch.equal(torch.get_rng_state(), expected)
