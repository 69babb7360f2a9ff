"""The visibility of every pair of tokens, as the mask that a backbone of transformers adds to its attention scores."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from transformers import PretrainedConfig

VISIBLE = "visible"
"""Key of bool [B, L, L]: whether token i attends to token j."""


def with_mask(inputs: dict[str, Any], config: PretrainedConfig) -> dict[str, Any]:
    """The arguments `inputs` of a backbone with `config`, where `visible` has become its `attention_mask` [B, 1, L, L].

    A mask of four dimensions is passed on to the attention function as it is: boolean where torch's fused attention
    reads it, else float32, 0 for a visible token and the lowest number for another.
    """
    visible = inputs.get(VISIBLE)
    if visible is None:
        return inputs
    mask = visible[:, None]
    if config._attn_implementation != "sdpa":
        # one pass: filling zeros by the inverse takes three
        mask = torch.where(mask, 0.0, torch.finfo(torch.float32).min).float()
    return {**{name: value for name, value in inputs.items() if name != VISIBLE}, "attention_mask": mask}
