"""Replace the classes of a network's modules by classes that call the kernels; names and weights of the modules do not
change."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from torch import nn
from torch.nn.functional import gelu
from transformers import AttentionInterface, PreTrainedModel
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

# registers itself when imported
from pipelines.parts.accelerators.cpu_kernels import attention, operations  # noqa: F401
from pipelines.parts.accelerators.cpu_kernels.dropout import KernelDropout
from pipelines.parts.accelerators.cpu_kernels.eligibility import same_bytecode
from pipelines.parts.accelerators.cpu_kernels.embedding import KernelEmbedding
from pipelines.parts.accelerators.cpu_kernels.embedding_sum import FusedEmbeddings, FusedRobertaEmbeddings
from pipelines.parts.accelerators.cpu_kernels.feed_forward import FusedFeedForward
from pipelines.parts.accelerators.cpu_kernels.intermediate import FusedIntermediate
from pipelines.parts.accelerators.cpu_kernels.layer_norm import KernelLayerNorm
from pipelines.parts.accelerators.cpu_kernels.lazy_logits import VocabularyLinear
from pipelines.parts.accelerators.cpu_kernels.library import open_library
from pipelines.parts.accelerators.cpu_kernels.linear import KernelLinear, share_input
from pipelines.parts.accelerators.cpu_kernels.relative_attention import FusedRelativeAttention
from pipelines.parts.accelerators.cpu_kernels.residual import FusedResidual
from pipelines.parts.accelerators.cpu_kernels.residual_stream import (
    FusedCrossAttentionLayer,
    FusedFeedForwardLayer,
    FusedSelfAttentionLayer,
)
from pipelines.parts.accelerators.cpu_kernels.root_mean_square import FusedRMSNorm
from pipelines.parts.accelerators.cpu_kernels.self_attention import FusedSelfAttention
from pipelines.parts.accelerators.cpu_kernels.t5_attention import FusedT5Attention

if TYPE_CHECKING:
    from collections.abc import Iterable

KERNEL_MODULES: dict[type[nn.Module], type[nn.Module]] = {
    nn.Dropout: KernelDropout, nn.Embedding: KernelEmbedding, nn.LayerNorm: KernelLayerNorm, nn.Linear: KernelLinear,
}  # fmt: skip
"""Class of torch → class that computes the same with the kernels."""
FUSED_BLOCKS: dict[type[nn.Module], type[nn.Module]] = {
    BertEmbeddings: FusedEmbeddings,
    RobertaEmbeddings: FusedRobertaEmbeddings,
    BertSelfAttention: FusedSelfAttention,
    BertSelfOutput: FusedResidual,
    BertIntermediate: FusedIntermediate,
    T5Attention: FusedT5Attention,
    T5DenseActDense: FusedFeedForward,
    T5LayerNorm: FusedRMSNorm,
    T5LayerFF: FusedFeedForwardLayer,
    XLNetRelativeAttention: FusedRelativeAttention,
    T5LayerSelfAttention: FusedSelfAttentionLayer,
    T5LayerCrossAttention: FusedCrossAttentionLayer,
}
"""Block of transformers → mixin for all classes whose `forward` has the same bytecode: whole model families copy it."""
SAME_INPUT = {"SelfAttention": ("query", "key", "value"), "T5Attention": ("k", "v")}
"""End of a class name → its layers that read the same input; T5's queries may come from another sequence."""


def swap_modules(networks: Iterable[PreTrainedModel], folder: Path) -> bool:
    """Let `networks` compute with the kernels, which are compiled into `folder`; False where the kernels cannot be
    loaded."""
    if not open_library(folder):
        return False
    AttentionInterface.register(attention.NAME, attention.attend)
    AttentionMaskInterface.register(attention.NAME, eager_mask)
    for network in networks:
        for module in network.modules():
            # exact types only: a derived class may compute something else
            module.__class__ = KERNEL_MODULES.get(type(module), type(module))
            if type(module) in (NewGELUActivation, FastGELUActivation):
                module.forward = partial(gelu, approximate="tanh")  # the same formula, in one pass instead of eight
        for module in network.modules():
            module.__class__ = with_block(type(module))
            for ending, names in SAME_INPUT.items():
                layers = [layer for name in names if type(layer := getattr(module, name, None)) is KernelLinear]
                if (
                    type(module).__name__.endswith(ending)
                    and len(layers) == len(names)
                    and len({layer.bias is None for layer in layers}) == 1
                ):
                    share_input(layers)
        for module in network.modules():  # heads of a network of several are networks themselves
            output = module.get_output_embeddings() if isinstance(module, PreTrainedModel) else None
            if type(output) is KernelLinear:
                output.__class__ = VocabularyLinear
        if network.config._attn_implementation == "eager" and network._can_set_attn_implementation():
            network.set_attn_implementation(attention.NAME)
    return True


def with_block(kind: type[nn.Module]) -> type[nn.Module]:
    """A subclass of `kind`, under the same name, that computes as one function; `kind` itself where no block matches
    its bytecode."""
    if "forward" not in vars(kind):
        return kind
    for known, block in FUSED_BLOCKS.items():
        if same_bytecode(kind.forward, known.forward):
            if kind not in _made:
                _made[kind] = type(kind.__name__, (block, kind), {"__module__": kind.__module__})
            return _made[kind]
    return kind


_made: dict[type[nn.Module], type[nn.Module]] = {}
"""Cache of the derived classes, so that modules of one class keep a common class."""
