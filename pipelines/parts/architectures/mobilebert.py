"""MobileBERT and its inverted-bottleneck teacher (Sun et al. 2020)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

from pipelines.parts.architectures import Architecture, AttentionNames, LayerNames
from pipelines.parts.architectures.bert import Bert
from pipelines.vocabulary import Ability

if TYPE_CHECKING:
    from torch import Tensor
    from torch.nn import Module
    from transformers import PretrainedConfig


class MobileBert(Architecture, name="mobilebert"):
    """BERT whose layers compute at another width than their states have: `intra_bottleneck_size` inside, `hidden_size`
    between them, with linear layers from one to the other (§3.1).

    Narrow inside, with several feed-forward networks one after the other, it is the student; wide inside, with
    `use_bottleneck_attention` and one feed-forward network, its teacher IB-BERT (table 1). Both have states of one
    width, so that a layer of one learns from that of the other without a projection. A token's vector is made of those
    of three neighbours, so that documents in one row are not apart.
    """

    paper = "arXiv:2004.02984"

    offers = frozenset({Ability.BIDIRECTIONAL, Ability.ONE_STACK, Ability.LAYERED, Ability.ATTENTION_SCORES})
    tiny: ClassVar[Mapping[str, int]] = {
        **Bert.tiny,
        "embedding_size": 16,
        "intra_bottleneck_size": 16,
        "num_feedforward_networks": 2,
    }
    stacks: ClassVar[Mapping[str, LayerNames]] = {
        "encoder.layer": LayerNames(
            "num_hidden_layers",
            ("intermediate.dense", "output.dense"),
            AttentionNames(
                "attention.self.query", "attention.self.key", "attention.self.value", "attention.output.dense"
            ),
        )
    }
    positions = "max_position_embeddings"
    token_types = ("type_vocab_size", 2)
    embedding_tables = Bert.embedding_tables
    # a linear layer over three neighbours' vectors comes before the sum, so that no module reads that of the tables
    embedding_sum = None
    masked_lm: ClassVar[tuple[str, ...]] = ("cls.predictions",)
    pooler: ClassVar[tuple[str, ...]] = ("pooler",)

    def head_width(self, config: PretrainedConfig) -> int:
        return int(config.true_hidden_size) // int(config.num_attention_heads)

    def attention_input(self, layer: Module, states: Tensor) -> Tensor:
        if not layer.use_bottleneck:
            return states
        query, *_ = layer.get_submodule("bottleneck")(states)
        result: Tensor = query
        return result
