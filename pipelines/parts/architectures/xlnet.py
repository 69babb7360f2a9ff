"""XLNet (Yang et al. 2019)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from pipelines.parts.architectures import Architecture, LayerNames
from pipelines.vocabulary import Ability


class Xlnet(Architecture, name="xlnet"):
    """Two-stream attention with relative positions.

    Its projections are bare parameters, and one dropout module serves attention's probabilities and its output.
    """

    paper = "arXiv:1906.08237"

    offers = frozenset({Ability.BIDIRECTIONAL, Ability.TWO_STREAM, Ability.MEMORY, Ability.ONE_STACK})
    tiny: ClassVar[Mapping[str, int]] = {"d_model": 32, "n_layer": 2, "n_head": 2, "d_head": 16, "d_inner": 64}
    width = "d_model"
    stacks: ClassVar[Mapping[str, LayerNames]] = {"layer": LayerNames("n_layer", ("ff.layer_1", "ff.layer_2"))}
    embedding_tables = ("word_embedding",)
    masked_lm: ClassVar[tuple[str, ...]] = ("lm_loss",)
    normalisation = ("layer_norm",)
