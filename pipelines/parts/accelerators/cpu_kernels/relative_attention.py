"""XLNet's relative attention (Yang et al. 2019, §2.3; Dai et al. 2019, §3.3) with one pass over the scores between its
products.

transformers scales, masks, casts, normalises and drops the scores in one pass each, in float32, for both of its
streams.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from pipelines.networks.masked_softmax import masked_softmax
from pipelines.parts.accelerators.cpu_kernels.dropout import KernelDropout
from pipelines.parts.accelerators.cpu_kernels.eligibility import has_no_hooks, trains_in_bfloat16

MASKED_SCORE = -1e30
"""Added by XLNet to the score of a masked position."""


class FusedRelativeAttention(nn.Module):
    """Mixin before a transformers class with these weights and the bytecode of XLNet's attention."""

    dropout: nn.Dropout
    r_w_bias: nn.Parameter
    r_r_bias: nn.Parameter
    r_s_bias: nn.Parameter
    seg_embed: nn.Parameter
    scale: float

    def rel_attn_core(
        self,
        q_head: Tensor,
        k_head_h: Tensor,
        v_head_h: Tensor,
        k_head_r: Tensor,
        seg_mat: Tensor | None = None,
        attn_mask: Tensor | None = None,
        output_attentions: bool = False,
    ) -> Any:
        """Context [Q, B, heads, H] of `q_head` [Q, B, heads, H], `k_head_h` and `v_head_h` [K, B, heads, H], and the
        relative positions `k_head_r` [P, B, heads, H]; `attn_mask` [Q, K, B, heads or 1] is 1 where attention is
        masked."""
        dropout = self.dropout
        if (
            output_attentions or type(dropout) is not KernelDropout or not dropout.training or dropout.p >= 1
            or not has_no_hooks(dropout) or not trains_in_bfloat16(q_head, self.r_w_bias, self.r_r_bias)
            or {one.dtype for one in (q_head, k_head_h, v_head_h, k_head_r)} != {torch.bfloat16}
        ):  # fmt: skip
            return super().rel_attn_core(  # type: ignore[misc]  # defined by the replaced class
                q_head,
                k_head_h,
                v_head_h,
                k_head_r,
                seg_mat=seg_mat,
                attn_mask=attn_mask,
                output_attentions=output_attentions,
            )
        scores = _products(q_head + self.r_w_bias.bfloat16(), k_head_h)
        positions = _products(q_head + self.r_r_bias.bfloat16(), k_head_r)
        scores = scores + _shifted(positions, scores.shape[-1])
        if seg_mat is not None:
            alike = torch.einsum("ibnd,snd->ibns", q_head + self.r_s_bias, self.seg_embed)
            scores = scores + torch.einsum("ijbs,ibns->bnij", seg_mat, alike)
        mask = None if attn_mask is None else MASKED_SCORE * attn_mask.permute(2, 3, 0, 1).float()
        weights = masked_softmax(scores, mask, self.scale, dropout.p)
        values = v_head_h.permute(1, 2, 0, 3).contiguous().flatten(0, 1)
        context = torch.bmm(weights.flatten(0, 1), values).view(*scores.shape[:3], -1)
        return context.permute(2, 0, 1, 3)


def _products(queries: Tensor, keys: Tensor) -> Tensor:
    """[B, heads, Q, K] of `queries` [Q, B, heads, H] and `keys` [K, B, heads, H]."""
    one, other = (states.permute(1, 2, 0, 3).contiguous().flatten(0, 1) for states in (queries, keys))
    return torch.bmm(one, other.transpose(1, 2)).view(*queries.shape[1:3], len(queries), len(keys))


def _shifted(scores: Tensor, width: int) -> Tensor:
    """[B, heads, Q, `width`]: `scores` [B, heads, Q, P] of distances, shifted to the key positions (Dai et al.

    2019, appendix B).
    """
    batch, heads, rows, positions = scores.shape
    transposed = scores.reshape(batch, heads, positions, rows)[:, :, 1:]
    return transposed.reshape(batch, heads, rows, positions - 1)[..., :width]
