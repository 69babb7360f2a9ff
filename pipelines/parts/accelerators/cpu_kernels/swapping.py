"""Give a network the kernels: its modules stay where they are, under their names and with their weights."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from torch import nn
from torch.nn.functional import gelu
from transformers import AttentionInterface
from transformers.activations import FastGELUActivation, NewGELUActivation
from transformers.masking_utils import AttentionMaskInterface, eager_mask
from transformers.models.bert.modeling_bert import (
    BertEmbeddings,
    BertIntermediate,
    BertSelfAttention,
    BertSelfOutput,
)
from transformers.models.roberta.modeling_roberta import RobertaEmbeddings
from transformers.models.t5.modeling_t5 import (
    T5Attention,
    T5DenseActDense,
    T5LayerCrossAttention,
    T5LayerFF,
    T5LayerNorm,
    T5LayerSelfAttention,
)
from transformers.models.xlnet.modeling_xlnet import XLNetRelativeAttention

from pipelines.parts.accelerators.cpu_kernels import attention, operations  # noqa: F401  # registers itself when imported
from pipelines.parts.accelerators.cpu_kernels.block import same_program
from pipelines.parts.accelerators.cpu_kernels.dropout import Dropout
from pipelines.parts.accelerators.cpu_kernels.embedding import Embedding
from pipelines.parts.accelerators.cpu_kernels.embedding_sum import EmbeddingSum, EmbeddingSumBehindPadding
from pipelines.parts.accelerators.cpu_kernels.feed_forward import FeedForward
from pipelines.parts.accelerators.cpu_kernels.heads import SelfAttention
from pipelines.parts.accelerators.cpu_kernels.intermediate import Intermediate
from pipelines.parts.accelerators.cpu_kernels.layer_norm import LayerNorm
from pipelines.parts.accelerators.cpu_kernels.library import open_library
from pipelines.parts.accelerators.cpu_kernels.linear import Linear, join
from pipelines.parts.accelerators.cpu_kernels.positioned_heads import PositionedSelfAttention
from pipelines.parts.accelerators.cpu_kernels.projection import VocabularyLinear
from pipelines.parts.accelerators.cpu_kernels.relative_attention import RelativeAttention
from pipelines.parts.accelerators.cpu_kernels.residual import Residual
from pipelines.parts.accelerators.cpu_kernels.residual_stream import (
    CrossAttentionLayer,
    FeedForwardLayer,
    SelfAttentionLayer,
)
from pipelines.parts.accelerators.cpu_kernels.root_mean_square import RootMeanSquare

if TYPE_CHECKING:
    from collections.abc import Iterable

    from transformers import PreTrainedModel

SWAPPED: dict[type[nn.Module], type[nn.Module]] = {
    nn.Dropout: Dropout, nn.Embedding: Embedding, nn.LayerNorm: LayerNorm, nn.Linear: Linear,
}  # fmt: skip
"""Modules of torch, and those that compute the same over the kernels."""
BLOCKS: dict[type[nn.Module], type[nn.Module]] = {
    BertEmbeddings: EmbeddingSum,
    RobertaEmbeddings: EmbeddingSumBehindPadding,
    BertSelfAttention: SelfAttention,
    BertSelfOutput: Residual,
    BertIntermediate: Intermediate,
    T5Attention: PositionedSelfAttention,
    T5DenseActDense: FeedForward,
    T5LayerNorm: RootMeanSquare,
    T5LayerFF: FeedForwardLayer,
    XLNetRelativeAttention: RelativeAttention,
    T5LayerSelfAttention: SelfAttentionLayer,
    T5LayerCrossAttention: CrossAttentionLayer,
}
"""Blocks of transformers, and what computes for those with the same program: whole families copy it."""
SAME_INPUT = {"SelfAttention": ("query", "key", "value"), "T5Attention": ("k", "v")}
"""How names of classes end → layers of theirs which read the same input; T5's queries may be of another text."""


def make_faster(networks: Iterable[PreTrainedModel], folder: Path) -> bool:
    """Let `networks` compute with the kernels, which are kept in `folder`; whether they could be had."""
    if not open_library(folder):
        return False
    AttentionInterface.register(attention.NAME, attention.attend)
    AttentionMaskInterface.register(attention.NAME, eager_mask)
    for network in networks:
        for module in network.modules():
            # only torch's own, no class derived from it: that may compute something else
            module.__class__ = SWAPPED.get(type(module), type(module))
            if type(module) in (NewGELUActivation, FastGELUActivation):
                module.forward = partial(gelu, approximate="tanh")  # the same formula, in one pass instead of eight
        for module in network.modules():
            module.__class__ = with_block(type(module))
            for ending, names in SAME_INPUT.items():
                layers = [layer for name in names if type(layer := getattr(module, name, None)) is Linear]
                if (
                    type(module).__name__.endswith(ending)
                    and len(layers) == len(names)
                    and len({layer.bias is None for layer in layers}) == 1
                ):
                    join(layers)
        output = network.get_output_embeddings()
        if type(output) is Linear:
            output.__class__ = VocabularyLinear
        if network.config._attn_implementation == "eager" and network._can_set_attn_implementation():
            network.set_attn_implementation(attention.NAME)
    return True


def with_block(kind: type[nn.Module]) -> type[nn.Module]:
    """A class under the name of `kind` and derived from it that computes as one block; `kind` where none has its program."""
    if "forward" not in vars(kind):
        return kind
    for known, block in BLOCKS.items():
        if same_program(kind.forward, known.forward):
            if kind not in _made:
                _made[kind] = type(kind.__name__, (block, kind), {"__module__": kind.__module__})
            return _made[kind]
    return kind


_made: dict[type[nn.Module], type[nn.Module]] = {}
"""Each class once, so that modules of one class stay modules of one class."""
