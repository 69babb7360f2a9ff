"""Architectures of transformers: everything that this project knows of one of them, in a file of its own.

A member is called by its `model_type`; its network is that of transformers, or one of `pipelines.networks`. Backbones,
heads, strategies and compressions read what they need here; nothing else names an architecture, its modules or the keys
of its configuration. Another architecture is one more file, with its network where transformers has none.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar, NamedTuple, Self, cast

from pipelines.components import Component, discover
from pipelines.vocabulary import Ability

if TYPE_CHECKING:
    from torch import Tensor
    from torch.nn import Module
    from transformers import PretrainedConfig


class AttentionNames(NamedTuple):
    """Paths below a layer of the linear layers of its self-attention, each of one projection for all heads."""

    query: str
    key: str
    value: str
    output: str


class RemovableHeads(NamedTuple):
    """Paths below a layer of the projections whose rows and columns belong to single heads, of a layer that computes
    with fewer heads once they are narrower: nothing else in it has a value for each head."""

    projections: tuple[str, ...]
    """Query, key and value; a single one gives all three, one after the other."""
    output: str


class LayerNames(NamedTuple):
    """The names inside one stack of layers."""

    count_key: str
    """Configuration key of the number of layers."""
    feed_forward: tuple[str, str] | None
    """Paths below a layer of the feed-forward sub-layer's linear layers, the inner and the outer one; None where the
    inner one has gates too, so that a neuron is not one of its outputs."""
    attention: AttentionNames | None = None
    """Projections of self-attention; None where they are not linear layers of their own."""
    sub_layer_ends: tuple[str, ...] = ()
    """Paths below a layer of the dropout modules that end its sub-layers, before the residual is added; empty where
    such a module does something else too."""
    heads: RemovableHeads | None = None
    """Projections that heads can be removed from; None where they cannot."""


class Architecture(Component):
    """An architecture of transformers: a value without options, whose class variables are what is known of it.

    Paths of modules start at the base model, unless something else is stated.
    """

    default_name = "bert"

    offers: ClassVar[frozenset[Ability]]
    tiny: ClassVar[Mapping[str, int]]
    """The smallest useful dimensions, by the architecture's own configuration keys."""
    width: ClassVar[str] = "hidden_size"
    """Configuration key of the size of a hidden state."""
    stacks: ClassVar[Mapping[str, LayerNames]]
    """Path of each list of layers, an encoder before its decoder → the names inside."""
    positions: ClassVar[str | None] = None
    """Configuration key of the size of the position table; None if positions are relative."""
    positions_after_padding: ClassVar[bool] = False
    """Whether the first token uses row padding id + 1 of that table, so that the rows before it are unused."""
    ids: ClassVar[Mapping[str, str]] = {"pad_token_id": "pad", "bos_token_id": "bos", "eos_token_id": "eos"}
    """Configuration key → special token of the tokenizer whose id it is set to; `end` is the one that ends a document,
    which tokenizers name differently."""
    token_types: ClassVar[tuple[str, int]] = ("", 0)
    """Configuration key of the number of token types, and that number where it is not set; 0 where there are none."""
    embedding_tables: ClassVar[tuple[str, ...]]
    """Paths of the tables whose rows are summed to the input of the first layer, that of the tokens first."""
    embedding_sum: ClassVar[str | None] = None
    """Path of the module whose input is that sum [B, L, width of the embeddings]; None where no module reads it."""
    masked_lm: ClassVar[tuple[str, ...]] = ()
    """Paths, in the masked-LM network, of the modules that map hidden states to vocabulary logits, in order; empty
    where transformers has none."""
    segment_pairs: ClassVar[tuple[str, ...]] = ()
    """Paths, in the pre-training network, of the modules that map the pooled first state to the logits of a pair of
    segments, in order; empty where transformers has none."""
    pooler: ClassVar[tuple[str, ...]] = ()
    """Paths of the modules that pool the first state, which a network may leave out."""
    poolings: ClassVar[frozenset[str] | None] = None
    """Poolings of a text that its configuration can record; None: any."""
    normalisation: ClassVar[tuple[str, ...]] = ("LayerNorm",)
    """Names of the layer-normalisation modules, whatever they are in."""

    @classmethod
    def of(cls, config: PretrainedConfig | Mapping[str, object]) -> Self | None:
        """The architecture of a network's configuration, or None for a network that is not of transformers."""
        kind = config.get("model_type") if isinstance(config, Mapping) else config.model_type
        return next((one for one in cls.all() if one.name == kind), None)

    @classmethod
    def all(cls) -> list[Self]:
        """Every architecture, by name."""
        discover(__name__)
        return [cast("type[Self]", member)() for _, member in sorted(cls.members.items())]

    def register(self) -> None:
        """Register a network of `pipelines.networks` with the Auto classes of transformers; nothing to do for others.

        A member imports its module here and calls its `register_auto_classes`: so the code of the network is part of
        the fingerprint of the stages that use it, and planning imports no torch.
        """

    def head_width(self, config: PretrainedConfig) -> int:
        """Elements of query and key of one attention head."""
        return int(config.hidden_size) // int(config.num_attention_heads)

    def attention_input(self, layer: Module, states: Tensor) -> Tensor:
        """What query and key of `layer` read of the states [B, L, H] that the layer reads."""
        return states

    def first_position(self, config: PretrainedConfig | Mapping[str, object]) -> int:
        """Row of the position table that the first token of a text uses, of a network with `config`."""
        if not self.positions_after_padding:
            return 0
        padding = config.get("pad_token_id") if isinstance(config, Mapping) else config.pad_token_id
        return int(cast("int", padding or 0)) + 1
